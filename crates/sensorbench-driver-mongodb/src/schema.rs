//! A schema in MongoDB's words: `[create]` and `[settle]` are command documents, and rows become documents.

use std::collections::BTreeMap;

use bson::{RawDocumentBuf, doc};
use mongodb::Database;
use sensorbench_driver::{DriverError, Schema, SchemaError, ValueRef, parse_part};
use serde::Deserialize;
use serde_json::Value as Json;

use crate::documents::{Documents, DocumentsText};
use crate::names::Name;
use crate::namespace::{self, MARK_COLLECTION};
use crate::target::Target;
use crate::template::{Part, Template};
use crate::{errors, observe};

/// What may be done to collections around a load.
const SHARD: &str = "shardCollection";
const COMMANDS: [&str; 6] = ["create", "createIndexes", "dropIndexes", "collMod", "compact", SHARD];

/// Beside `shardCollection`: it is left out where the target is not a router of a sharded cluster.
const WHERE_SHARDED: &str = "where_sharded";

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
    where_sharded: bool,
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

    /// Makes the collections, sharded where the target is a router and the schema says so.
    pub async fn create(&self, database: &Database, target: &Target) -> Result<(), DriverError> {
        let is_sharded = self.create.iter().any(|step| step.where_sharded)
            && observe::is_sharded(database).await.map_err(|error| errors::statement_error(&target.shown, error))?;
        for step in self.create.iter().filter(|step| is_sharded || !step.where_sharded) {
            step.run(database, target).await?;
        }
        Ok(())
    }

    /// Does what comes after loading.
    pub async fn settle(&self, database: &Database, target: &Target) -> Result<(), DriverError> {
        for step in &self.settle {
            step.run(database, target).await?;
        }
        Ok(())
    }
}

fn steps(part: &str, commands: &[Json]) -> Result<Vec<Step>, SchemaError> {
    let step = |(number, command): (usize, &Json)| Step::of(format!("{part}.commands[{number}]"), command);
    commands.iter().enumerate().map(step).collect()
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
        let where_sharded = match command.get(WHERE_SHARDED) {
            None => false,
            Some(Json::Bool(true)) if name == SHARD => true,
            Some(_) => {
                let message = format!("expected true, beside {SHARD} alone");
                return Err(SchemaError::at(format!("{path}.{WHERE_SHARDED}"), message));
            }
        };
        let members = command.as_object().into_iter().flatten().filter(|(name, _)| name.as_str() != WHERE_SHARDED);
        let command = Json::Object(members.map(|(name, value)| (name.clone(), value.clone())).collect());
        Ok(Self { command: Template::of(&path, &command, &[])?, path, name, collection, where_sharded })
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
        let refused = |error| errors::schema_error(&target.shown, &self.path, error);
        // Sharding is ordered from the whole deployment, all else from the database. Servers before 6.0 shard only in databases that
        // are said to be sharded.
        let done = if self.name == SHARD {
            let admin = database.client().database("admin");
            admin.run_command(doc! {"enableSharding": &target.namespace}).await.map_err(refused)?;
            let full = format!("{}.{collection}", target.namespace);
            admin.run_raw_command(self.command(&full)).await
        } else {
            database.run_raw_command(self.command(collection)).await
        };
        done.map(|_| ()).map_err(refused)
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
    fn sharding_may_be_left_out_where_nothing_is_sharded() {
        let shard = json!({"shardCollection": "t", "key": {"_id": "hashed"}, "where_sharded": true});
        let schema = schema(json!({"commands": [{"create": "t"}, shard]})).unwrap();
        assert_eq!(schema.create.iter().map(|step| step.where_sharded).collect::<Vec<_>>(), [false, true]);
        // The server is not sent what is said to the driver.
        let command = bson::Document::try_from(schema.create[1].command("mine.t")).unwrap();
        assert_eq!(command, bson::doc! {"shardCollection": "mine.t", "key": {"_id": "hashed"}});
    }

    #[test]
    fn what_is_no_command_about_a_collection_is_refused() {
        let refused = |create: Json| schema(create).unwrap_err().to_string();
        assert!(
            refused(json!({"commands": [{"dropDatabase": 1}]})).starts_with("create.commands[0]: found {\"dropDatabase\":1}")
        );
        assert!(refused(json!({"commands": [{"create": "sensorbench"}]})).contains("has the mark"));
        let where_sharded = "create.commands[0].where_sharded: expected true, beside shardCollection alone";
        for command in [json!({"create": "t", "where_sharded": true}), json!({"shardCollection": "t", "where_sharded": "no"})] {
            assert!(refused(json!({"commands": [command]})).contains(where_sharded));
        }
        assert!(refused(json!({"statements": []})).contains("unknown field `statements`"));
        assert!(refused(json!({"documents": {"u": {}}})).contains("create.documents.u: the schema fills no such table"));
    }
}
