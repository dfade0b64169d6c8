//! An operation's command, ready to be sent, and how its reply is read.

use bson::{Document, RawDocument, RawDocumentBuf};
use sensorbench_driver::{Column, ConversionError, DriverError, Operation, Parameter, Request, Rows, SchemaError, parse_part};
use serde::Deserialize;
use serde_json::Value as Json;

use crate::answer::{Path, read};
use crate::names::Name;
use crate::slots::{Slots, SlotsText};
use crate::target::Target;
use crate::template::{Part, Template};

/// `[operation.NAME]` of a schema file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OperationText {
    command: Json,
    row: Option<Vec<String>>,
    slots: Option<SlotsText>,
}

/// What a command answers with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reply {
    /// Documents, batch by batch.
    Cursor,
    /// One document, which may not be there.
    Found,
    /// A number of documents.
    Number,
    /// Values of one field.
    Values,
    /// How a write went.
    Written,
}

/// Commands that operations may be, what they answer with, and whether they write.
const COMMANDS: [(&str, Reply, bool); 8] = [
    ("find", Reply::Cursor, false),
    ("aggregate", Reply::Cursor, false),
    ("count", Reply::Number, false),
    ("distinct", Reply::Values, false),
    ("insert", Reply::Written, true),
    ("update", Reply::Written, true),
    ("delete", Reply::Written, true),
    ("findAndModify", Reply::Found, true),
];

/// An operation.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// What the command answers with.
    pub reply: Reply,
    /// Whether it changes something.
    pub writes: bool,
    name: String,
    command: Template,
    parameters: Vec<Parameter>,
    columns: Vec<Column>,
    row: Vec<Path>,
    slots: Option<Slots>,
}

impl Prepared {
    pub fn of(operation: &Operation) -> Result<Self, DriverError> {
        let path = format!("operation.{}", operation.name);
        let text: OperationText = parse_part(&path, &operation.statement)?;
        let at = format!("{path}.command");
        let (reply, writes) = kind_of(&at, &text.command)?;
        let mut command = Template::of(&at, &text.command, &operation.parameters)?;
        name_collection(&at, &text.command, &mut command, &operation.parameters)?;
        complete(&mut command);
        let slots = text.slots.as_ref();
        let slots = slots.map(|slots| Slots::of(&format!("{path}.slots"), slots, &operation.parameters, &operation.columns));
        Ok(Self {
            reply,
            writes,
            name: operation.name.clone(),
            row: row_of(&path, &text, reply, &operation.columns)?,
            slots: slots.transpose()?,
            command,
            parameters: operation.parameters.clone(),
            columns: operation.columns.clone(),
        })
    }

    /// The same with what the target's URL says of reads and writes, unless the command says it itself.
    pub fn at(mut self, target: &Target) -> Self {
        let (key, concern) =
            if self.writes { ("writeConcern", &target.write_concern) } else { ("readConcern", &target.read_concern) };
        if !concern.is_empty() {
            self.command.add(key, Part::constant(concern.clone()));
        }
        self
    }

    /// The command with the parameters of a request.
    #[inline]
    pub fn command(&self, request: &Request) -> Result<RawDocumentBuf, DriverError> {
        let mut bytes = Vec::with_capacity(512);
        let appended = self.command.append(&mut bytes, &|place| request.parameters[place].as_ref());
        appended.map_err(|error| DriverError::Data(format!("{}: parameter {}", self.name, error.describe(&self.parameters))))?;
        RawDocumentBuf::from_bytes(bytes).map_err(|error| DriverError::Data(format!("{}: {error}", self.name)))
    }

    /// Appends the rows of a document of the answer.
    #[inline]
    pub fn push(&self, document: &RawDocument, request: &mut Request) -> Result<(), DriverError> {
        let Request { rows, parameters, .. } = request;
        match &self.slots {
            Some(slots) => {
                slots.push(rows, document, |place| parameters[place].as_ref()).map_err(|refused| self.refused(refused))
            }
            None => self.push_row(rows, document),
        }
    }

    fn push_row(&self, rows: &mut Rows, document: &RawDocument) -> Result<(), DriverError> {
        for (path, column) in self.row.iter().zip(&self.columns) {
            let value = path.find(document).and_then(|value| read(column.value_type, value));
            rows.push(value.map_err(|refused| self.refused(refused.at("column", &column.name)))?);
        }
        rows.end_row();
        Ok(())
    }

    /// Appends the rows of a reply that is not a cursor.
    pub fn push_reply(&self, reply: &Document, request: &mut Request) -> Result<(), DriverError> {
        let raw = |document: &Document| {
            RawDocumentBuf::try_from(document).map_err(|error| DriverError::Data(format!("{}: {error}", self.name)))
        };
        match self.reply {
            Reply::Written | Reply::Cursor => Ok(()),
            Reply::Number => self.push(&raw(reply)?, request),
            Reply::Found => match reply.get_document("value") {
                Ok(found) => self.push(&raw(found)?, request),
                Err(_) => Ok(()),
            },
            Reply::Values => {
                let values = reply.get_array("values").cloned().unwrap_or_default();
                values.into_iter().try_for_each(|value| self.push(&raw(&bson::doc! {VALUE: value})?, request))
            }
        }
    }

    fn refused(&self, refused: ConversionError) -> DriverError {
        DriverError::Data(format!("{}: {refused}", self.name))
    }
}

/// What a value of `distinct` is called as a field.
const VALUE: &str = "value";
/// The field of a reply that has the number of documents.
const NUMBER: &str = "n";

fn kind_of(path: &str, command: &Json) -> Result<(Reply, bool), SchemaError> {
    let first = command.as_object().and_then(|members| members.keys().next());
    let found = first.and_then(|first| COMMANDS.iter().find(|(name, ..)| name == first));
    found.map(|(_, reply, writes)| (*reply, *writes)).ok_or_else(|| {
        let known: Vec<_> = COMMANDS.iter().map(|(name, ..)| *name).collect();
        let found = first.map_or_else(|| command.to_string(), |first| format!("{first:?}"));
        SchemaError::at(path, format!("found {found}; expected a document that begins with one of {}", known.join(", ")))
    })
}

/// Puts numbers into the name of the collection, which is the value of the command's first key.
fn name_collection(path: &str, text: &Json, command: &mut Template, parameters: &[Parameter]) -> Result<(), SchemaError> {
    let first = text.as_object().and_then(|members| members.iter().next());
    let Some((key, Json::String(collection))) = first else {
        return Err(SchemaError::at(path, "expected the name of a collection as the first value"));
    };
    command.members[0].1 = Part::Text(Name::of(&format!("{path}.{key}"), collection, parameters)?);
    Ok(())
}

/// What every driver puts into commands.
fn complete(command: &mut Template) {
    if command.member("aggregate").is_some() {
        command.add("cursor", Part::constant(Document::new()));
    }
    if command.member("insert").is_none() {
        return;
    }
    for (_, part) in &mut command.members {
        if let Part::Array(documents) = part {
            documents.iter_mut().for_each(|document| {
                if let Part::Document(document) = document {
                    document.identify();
                }
            });
        }
    }
}

fn row_of(path: &str, text: &OperationText, reply: Reply, columns: &[Column]) -> Result<Vec<Path>, SchemaError> {
    if reply == Reply::Written && !columns.is_empty() {
        return Err(SchemaError::at(format!("{path}.command"), "a write answers with no rows; findAndModify does"));
    }
    if reply == Reply::Values && columns.len() != 1 {
        return Err(SchemaError::at(format!("{path}.command"), "distinct answers with one column"));
    }
    let Some(row) = &text.row else {
        let own_name = |column: &Column| match reply {
            Reply::Values => Path::of(VALUE),
            Reply::Number => Path::of(NUMBER),
            _ => Path::of(&column.name),
        };
        return Ok(columns.iter().map(own_name).collect());
    };
    if row.len() != columns.len() || text.slots.is_some() {
        let message = format!("expected a field for each of the {} columns, and no slots", columns.len());
        return Err(SchemaError::at(format!("{path}.row"), message));
    }
    Ok(row.iter().map(|field| Path::of(field)).collect())
}

#[cfg(test)]
mod tests {
    use bson::{doc, rawdoc};
    use sensorbench_driver::{TargetUrl, Type, Value};
    use serde_json::json;

    use super::*;

    fn operation(statement: Json, columns: &[&str]) -> Operation {
        let column = |name: &&str| Column { name: (*name).to_owned(), value_type: Type::Integer, computed: false };
        Operation {
            name: "q".to_owned(),
            parameters: vec![Parameter { name: "x".to_owned(), value_type: Type::Integer }],
            columns: columns.iter().map(column).collect(),
            order: Vec::new(),
            statement,
        }
    }

    fn request() -> Request {
        Request { operation: 0, parameters: vec![Value::Integer(7)], rows: Rows::new() }
    }

    fn sent(statement: Json, columns: &[&str], url: &str) -> Document {
        let target = Target::of(&TargetUrl::parse(url).unwrap()).unwrap();
        let prepared = Prepared::of(&operation(statement, columns)).unwrap().at(&target);
        prepared.command(&request()).unwrap().try_into().unwrap()
    }

    #[test]
    fn commands_say_what_the_url_says_of_reads_and_writes() {
        let url = "mongodb://h?write_concern=majority&journal=on&read_concern=local";
        let find = json!({"command": {"find": "t", "filter": {"x": ":x"}}});
        assert_eq!(sent(find.clone(), &["a"], url), doc! {"find": "t", "filter": {"x": 7}, "readConcern": {"level": "local"}});
        assert_eq!(sent(find, &["a"], "mongodb://h"), doc! {"find": "t", "filter": {"x": 7}});
        let delete = json!({"command": {"delete": "t", "deletes": [{"q": {}, "limit": 0}]}});
        let concern = doc! {"w": "majority", "j": true};
        assert_eq!(sent(delete, &[], url).get_document("writeConcern").unwrap(), &concern);
        let own = json!({"command": {"delete": "t", "deletes": [], "writeConcern": {"w": 1}}});
        assert_eq!(sent(own, &[], url).get_document("writeConcern").unwrap(), &doc! {"w": 1});
    }

    #[test]
    fn commands_are_completed_as_drivers_do() {
        let aggregate = sent(json!({"command": {"aggregate": "t_:x", "pipeline": []}}), &["a"], "mongodb://h");
        assert_eq!(aggregate, doc! {"aggregate": "t_7", "pipeline": [], "cursor": {}});
        let insert = sent(json!({"command": {"insert": "t", "documents": [{"x": ":x"}]}}), &[], "mongodb://h");
        let document = insert.get_array("documents").unwrap()[0].as_document().unwrap();
        assert!(document.get_object_id("_id").is_ok() && document.get_i32("x").unwrap() == 7);
    }

    #[test]
    fn replies_become_rows() {
        let rows = |statement: Json, columns: &[&str], reply: Document| {
            let prepared = Prepared::of(&operation(statement, columns)).unwrap();
            let mut request = request();
            prepared.push_reply(&reply, &mut request).unwrap();
            request.rows.iter().map(|row| row.value(0).to_value()).collect::<Vec<_>>()
        };
        let distinct = json!({"command": {"distinct": "t", "key": "a"}});
        assert_eq!(rows(distinct, &["a"], doc! {"values": [1, 2]}), [Value::Integer(1), Value::Integer(2)]);
        assert_eq!(rows(json!({"command": {"count": "t"}}), &["records"], doc! {"n": 5}), [Value::Integer(5)]);
        let modify = json!({"command": {"findAndModify": "t", "update": {}}, "row": ["b.c"]});
        assert_eq!(rows(modify.clone(), &["a"], doc! {"value": {"b": {"c": 3}}}), [Value::Integer(3)]);
        assert!(rows(modify, &["a"], doc! {"value": null}).is_empty());
        let prepared = Prepared::of(&operation(json!({"command": {"find": "t"}}), &["a", "b"])).unwrap();
        let mut request = request();
        prepared.push(&rawdoc! {"b": 2, "_id": 5}, &mut request).unwrap();
        assert_eq!(
            request.rows.iter().next().map(|row| (row.value(0).to_value(), row.value(1).to_value())),
            Some((Value::Null, Value::Integer(2)))
        );
        let error = prepared.push(&rawdoc! {"a": "text"}, &mut request).unwrap_err().to_string();
        assert!(error.contains("q: column a: expected integer"), "{error}");
    }

    #[test]
    fn what_is_no_command_is_refused() {
        let refused = |statement: Json, columns: &[&str]| Prepared::of(&operation(statement, columns)).unwrap_err().to_string();
        let message = refused(json!({"command": {"filter": {}, "find": "t"}}), &["a"]);
        assert!(
            message.contains("operation.q.command: found \"filter\"; expected a document that begins with one of find"),
            "{message}"
        );
        assert!(refused(json!({"command": {"dropDatabase": 1}}), &[]).contains("found \"dropDatabase\""));
        assert!(refused(json!({"command": {"find": 1}}), &["a"]).contains("expected the name of a collection"));
        assert!(refused(json!({"command": {"insert": "t"}}), &["a"]).contains("a write answers with no rows"));
        assert!(
            refused(json!({"command": {"find": "t"}, "row": ["a", "b"]}), &["a"]).contains("a field for each of the 1 columns")
        );
        assert!(refused(json!({"command": {"find": "t"}, "rows": []}), &["a"]).contains("unknown field `rows`"));
    }
}
