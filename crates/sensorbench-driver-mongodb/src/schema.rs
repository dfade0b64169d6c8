//! A schema in MongoDB's words: `[create]` and `[settle]` are command documents, and rows become documents.

use std::collections::BTreeMap;

use bson::RawDocumentBuf;
use mongodb::Database;
use sensorbench_driver::{DriverError, Schema, SchemaError, ValueRef, parse_part};
use serde::Deserialize;
use serde_json::Value as Json;

use crate::documents::{Documents, DocumentsText};
use crate::errors;
use crate::names::Name;
use crate::namespace::{self, MARK_COLLECTION};
use crate::target::Target;
use crate::template::{Part, Template};

/// What may be done to collections around a load.
const COMMANDS: [&str; 6] = ["create", "createIndexes", "dropIndexes", "collMod", "compact", "shardCollection"];

/// A schema whose parts are known to be sound.
#[derive(Clone, Debug)]
pub struct MongodbSchema {
    create: Vec<Step>,
    settle: Vec<Step>,
    tables: BTreeMap<String, Documents>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Create {
    #[serde(default)]
    commands: Vec<Json>,
    #[serde(default)]
    documents: BTreeMap<String, DocumentsText>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settle {
    #[serde(default)]
    commands: Vec<Json>,
}

/// A command about a collection, or about all whose names begin alike.
#[derive(Clone, Debug)]
struct Step {
    path: String,
    name: String,
    collection: String,
    command: Template,
}

impl MongodbSchema {
    pub fn of(schema: &Schema) -> Result<Self, SchemaError> {
        let Create { commands, mut documents } = parse_part("create", &schema.create)?;
        let settle: Settle = parse_part("settle", &schema.settle)?;
        let mut tables = BTreeMap::new();
        for (table, columns) in &schema.tables {
            let text = documents.remove(table).unwrap_or_default();
            tables.insert(table.clone(), Documents::of(table, text, columns)?);
        }
        if let Some(table) = documents.keys().next().filter(|_| !schema.tables.is_empty()) {
            return Err(SchemaError::at(format!("create.documents.{table}"), "the schema fills no such table"));
        }
        let create = steps("create", &commands)?;
        // A collection that is made, but not filled, can be counted.
        for Step { collection, .. } in create.iter().filter(|step| step.name == "create") {
            if !tables.contains_key(collection) {
                tables.insert(collection.clone(), Documents::of(collection, DocumentsText::default(), &[])?);
            }
        }
        Ok(Self { create, settle: steps("settle", &settle.commands)?, tables })
    }

    /// How the rows of a table become documents. A collection that is only made is a table of no columns.
    pub fn table(&self, name: &str) -> Result<&Documents, DriverError> {
        self.tables.get(name).ok_or_else(|| DriverError::Data(format!("the schema neither fills nor makes a table {name}")))
    }

    /// Makes the collections.
    pub async fn create(&self, database: &Database, target: &Target) -> Result<(), DriverError> {
        run(&self.create, database, target).await
    }

    /// Does what comes after loading.
    pub async fn settle(&self, database: &Database, target: &Target) -> Result<(), DriverError> {
        run(&self.settle, database, target).await
    }
}

fn steps(part: &str, commands: &[Json]) -> Result<Vec<Step>, SchemaError> {
    let step = |(number, command): (usize, &Json)| Step::of(format!("{part}.commands[{number}]"), command);
    commands.iter().enumerate().map(step).collect()
}

async fn run(steps: &[Step], database: &Database, target: &Target) -> Result<(), DriverError> {
    for step in steps {
        step.run(database, target).await?;
    }
    Ok(())
}

impl Step {
    fn of(path: String, command: &Json) -> Result<Self, SchemaError> {
        let first = command.as_object().and_then(|members| members.iter().next());
        let (name, collection) = match first {
            Some((name, Json::String(collection))) if COMMANDS.contains(&name.as_str()) => (name.clone(), collection.clone()),
            _ => {
                let message =
                    format!("found {command}; expected {{ COMMAND = COLLECTION, … }} with one of {}", COMMANDS.join(", "));
                return Err(SchemaError::at(path, message));
            }
        };
        if collection == MARK_COLLECTION {
            return Err(SchemaError::at(path, format!("the collection {MARK_COLLECTION} has the mark; name another one")));
        }
        Ok(Self { command: Template::of(&path, command, &[])?, path, name, collection })
    }

    async fn run(&self, database: &Database, target: &Target) -> Result<(), DriverError> {
        let Some(prefix) = self.collection.strip_suffix('*') else {
            return self.run_for(&self.collection, database, target).await;
        };
        for collection in namespace::collections(database, target, prefix).await? {
            self.run_for(&collection, database, target).await?;
        }
        Ok(())
    }

    async fn run_for(&self, collection: &str, database: &Database, target: &Target) -> Result<(), DriverError> {
        // Sharding is ordered from the whole deployment, all else from the database.
        let done = if self.name == "shardCollection" {
            let full = format!("{}.{collection}", target.namespace);
            database.client().database("admin").run_raw_command(self.command(&full)).await
        } else {
            database.run_raw_command(self.command(collection)).await
        };
        done.map(|_| ()).map_err(|error| errors::schema_error(&target.shown, &self.path, error))
    }

    fn command(&self, collection: &str) -> RawDocumentBuf {
        let mut command = self.command.clone();
        command.members[0] = (Name::Literal(self.name.clone()), Part::constant(collection));
        let mut bytes = Vec::new();
        command.append(&mut bytes, &|_| ValueRef::Null).expect("there are no parameters in it");
        RawDocumentBuf::from_bytes(bytes).expect("a document was written")
    }
}

#[cfg(test)]
mod tests {
    use sensorbench_driver::{Parameter, Type};
    use serde_json::json;

    use super::*;

    fn schema(create: Json) -> Result<MongodbSchema, SchemaError> {
        let columns = vec![Parameter { name: "id".to_owned(), value_type: Type::Integer }];
        MongodbSchema::of(&Schema { create, tables: [("t".to_owned(), columns)].into(), ..Schema::default() })
    }

    #[test]
    fn commands_keep_their_order_and_take_the_collection() {
        let index = json!({"createIndexes": "t_*", "indexes": [{"name": "k", "key": {"z": 1, "a": -1}}]});
        let schema = schema(json!({"commands": [index]})).unwrap();
        let command = bson::Document::try_from(schema.create[0].command("t_5")).unwrap();
        assert_eq!(command, bson::doc! {"createIndexes": "t_5", "indexes": [{"name": "k", "key": {"z": 1, "a": -1}}]});
        assert!(schema.table("t").is_ok() && schema.table("u").is_err());
    }

    #[test]
    fn a_collection_that_is_made_and_not_filled_is_a_table() {
        let schema = schema(json!({"commands": [{"create": "u"}, {"createIndexes": "v", "indexes": []}]})).unwrap();
        assert!(schema.table("u").is_ok() && schema.table("v").is_err());
    }

    #[test]
    fn what_is_no_command_about_a_collection_is_refused() {
        let refused = |create: Json| schema(create).unwrap_err().to_string();
        assert!(
            refused(json!({"commands": [{"dropDatabase": 1}]})).starts_with("create.commands[0]: found {\"dropDatabase\":1}")
        );
        assert!(refused(json!({"commands": [{"create": "sensorbench"}]})).contains("has the mark"));
        assert!(refused(json!({"statements": []})).contains("unknown field `statements`"));
        assert!(refused(json!({"documents": {"u": {}}})).contains("create.documents.u: the schema fills no such table"));
    }
}
