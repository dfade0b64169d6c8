//! A schema in Redis' words: how each table's rows lie under keys.

use std::collections::BTreeMap;

use sensorbench_driver::{DriverError, Parameter, Schema, SchemaError, parse_part};
use serde::Deserialize;

use crate::command::{Command, named};
use crate::word::{Fields, Template, WordText};

/// `[create]` of a schema file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Create {
    #[serde(default)]
    table: BTreeMap<String, TableText>,
}

/// `[create.table.NAME]` of a schema file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TableText {
    /// What follows the table's name in its keys; nothing when the whole table is under one key.
    #[serde(default)]
    key: String,
    /// The command that writes a row, without its key.
    write: Option<Vec<WordText>>,
    /// What a row is, for counting.
    row: Option<RowUnit>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum RowUnit {
    Key,
    Member,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settle {}

/// A schema whose tables are known.
#[derive(Clone, Debug)]
pub struct RedisSchema {
    tables: BTreeMap<String, Table>,
}

/// A table: keys of one form.
#[derive(Clone, Debug)]
pub struct Table {
    /// What all of its keys begin with.
    pub prefix: String,
    /// What follows that, as text.
    pub key: String,
    /// How to count its rows.
    pub rows: RowCount,
    /// How its rows are written, when it is filled.
    pub fill: Option<Fill>,
}

/// How rows are counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RowCount {
    /// Each key is a row.
    Keys,
    /// Each key has as many rows as this command says.
    Members(&'static str),
}

/// How rows of a fill are written.
#[derive(Clone, Debug)]
pub struct Fill {
    /// Columns of the fill, in their order.
    pub fields: Fields,
    /// The command that writes a row.
    pub command: Command,
    /// Whether the words of many rows with one key may be put into one command.
    pub is_variadic: bool,
}

/// Commands that write rows. `words`: how many words a member takes, where a command may have many members.
struct Write {
    name: &'static str,
    words: Option<usize>,
    count: Option<&'static str>,
}

const WRITES: [Write; 9] = [
    Write { name: "APPEND", words: None, count: None },
    Write { name: "HSET", words: Some(2), count: Some("HLEN") },
    Write { name: "LPUSH", words: Some(1), count: Some("LLEN") },
    Write { name: "RPUSH", words: Some(1), count: Some("LLEN") },
    Write { name: "SADD", words: Some(1), count: Some("SCARD") },
    Write { name: "SET", words: None, count: None },
    Write { name: "TS.ADD", words: None, count: None },
    Write { name: "XADD", words: None, count: Some("XLEN") },
    Write { name: "ZADD", words: Some(2), count: Some("ZCARD") },
];

impl RedisSchema {
    /// Reads a schema whose keys will be in a namespace.
    pub fn of(schema: &Schema, namespace: &str) -> Result<Self, SchemaError> {
        let create: Create = parse_part("create", &schema.create)?;
        let Settle {} = parse_part("settle", &schema.settle)?;
        let mut tables = BTreeMap::new();
        for (name, text) in create.table {
            let table = Table::of(&name, text, schema.tables.get(&name), namespace)?;
            tables.insert(name, table);
        }
        let parsed = Self { tables };
        for name in schema.tables.keys() {
            parsed.table(&format!("fill.{name}"), name)?;
        }
        Ok(parsed)
    }

    /// The table called `name`, which stands at `path`.
    pub fn table(&self, path: &str, name: &str) -> Result<&Table, SchemaError> {
        self.tables.get(name).ok_or_else(|| {
            let known: Vec<_> = self.tables.keys().map(String::as_str).collect();
            let known = if known.is_empty() {
                "the schema creates none".to_owned()
            } else {
                format!("expected one of {}", known.join(", "))
            };
            SchemaError::at(path, format!("there is no table {name}; {known}"))
        })
    }

    /// How a table is filled.
    pub fn fill(&self, name: &str) -> Result<&Fill, DriverError> {
        let fill = self.tables.get(name).and_then(|table| table.fill.as_ref());
        fill.ok_or_else(|| DriverError::Data(format!("the schema fills no table {name}")))
    }
}

impl Table {
    fn of(name: &str, text: TableText, columns: Option<&Vec<Parameter>>, namespace: &str) -> Result<Self, SchemaError> {
        let path = format!("create.table.{name}");
        if !is_word(name) {
            return Err(SchemaError::at(path, "the name of a table must be a word: letters, digits and underscores"));
        }
        let write = text.write.as_deref().map(|write| Write::of(&format!("{path}.write"), write)).transpose()?;
        let rows = rows(&path, text.row, write.as_ref().and_then(|write| write.members(text.write.as_deref()?)))?;
        let table = Self { prefix: format!("{namespace}:{name}:"), key: text.key, rows, fill: None };
        let Some(columns) = columns else { return Ok(table) };
        let (Some(write), Some(texts)) = (write, &text.write) else {
            return Err(SchemaError::at(path, "the table is filled, so write is needed: the command that writes a row"));
        };
        let fields = Fields { owner: format!("table {name}"), kind: "column", list: columns.clone() };
        let key = table.key(&format!("{path}.key"), None, &fields)?;
        let command = Command::of(&format!("{path}.write"), texts, key, &fields)?;
        let is_variadic = write.is_variadic(texts);
        Ok(Self { fill: Some(Fill { fields, command, is_variadic }), ..table })
    }

    /// The key that `text` makes of fields, or the table's own `key` where there is no text.
    pub fn key(&self, path: &str, text: Option<&str>, fields: &Fields) -> Result<Template, SchemaError> {
        Ok(Template::of(path, text.unwrap_or(&self.key), fields)?.after(&self.prefix))
    }
}

impl Write {
    fn of(path: &str, texts: &[WordText]) -> Result<Self, SchemaError> {
        let (name, _) = named(path, texts)?;
        WRITES.into_iter().find(|write| write.name == name).ok_or_else(|| {
            let known = WRITES.map(|write| write.name).join(", ");
            SchemaError::at(format!("{path}[0]"), format!("{name} writes no rows; expected one of {known}"))
        })
    }

    /// Number of words after the name, where it is always the same.
    fn length(texts: &[WordText]) -> Option<usize> {
        let varies = texts.iter().any(|text| matches!(text, WordText::Together(_)));
        (!varies).then_some(texts.len() - 1)
    }

    /// Whether the words of one row may follow those of another. For ZADD they may begin with options.
    fn is_variadic(&self, texts: &[WordText]) -> bool {
        let (Some(member), Some(words)) = (self.words, Self::length(texts)) else { return false };
        if self.name == "ZADD" { words == member } else { words.is_multiple_of(member) }
    }

    /// The command that counts rows, where each row is one member of its key.
    fn members(&self, texts: &[WordText]) -> Option<&'static str> {
        let is_one = |member: usize| Self::length(texts).is_some_and(|words| words == member || self.name == "ZADD");
        self.count.filter(|_| self.words.is_none_or(is_one))
    }
}

/// What a row is: what the file says, else a member where each row writes one, else a key.
fn rows(path: &str, unit: Option<RowUnit>, members: Option<&'static str>) -> Result<RowCount, SchemaError> {
    match (unit, members) {
        (Some(RowUnit::Key), _) | (None, None) => Ok(RowCount::Keys),
        (_, Some(count)) => Ok(RowCount::Members(count)),
        (Some(RowUnit::Member), None) => {
            Err(SchemaError::at(format!("{path}.row"), "a row does not write one member of its key; expected \"key\""))
        }
    }
}

fn is_word(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema(table: serde_json::Value) -> Result<RedisSchema, SchemaError> {
        let columns = json!([{"name": "id", "type": "integer"}, {"name": "value", "type": "double"}]);
        let schema = serde_json::from_value(json!({"create": {"table": {"t": table}}, "tables": {"t": columns}})).unwrap();
        RedisSchema::of(&schema, "space")
    }

    #[test]
    fn rows_are_members_or_keys_and_share_commands_where_they_can() {
        for (table, rows, is_variadic) in [
            (json!({"write": ["ZADD", "{id}", "{value}"]}), RowCount::Members("ZCARD"), true),
            (json!({"write": ["ZADD", "NX", "{id}", "{value}"]}), RowCount::Members("ZCARD"), false),
            (json!({"write": ["HSET", "{id}", {"record": ["value"]}]}), RowCount::Members("HLEN"), true),
            (json!({"key": "{id}", "write": ["HSET", "id", "{id}", "value", "{value}"]}), RowCount::Keys, true),
            (json!({"key": "{id}", "write": ["HSET", "id", "{id}", ["value", "{value}"]]}), RowCount::Keys, false),
            (json!({"write": ["RPUSH", "{value}"], "row": "key"}), RowCount::Keys, true),
            (json!({"key": "{id}", "write": ["SET", "{value}"]}), RowCount::Keys, false),
            (json!({"write": ["XADD", "*", "value", "{value}"]}), RowCount::Members("XLEN"), false),
        ] {
            let schema = schema(table.clone()).unwrap();
            assert_eq!(schema.table("", "t").unwrap().rows, rows, "{table}");
            assert_eq!(schema.fill("t").unwrap().is_variadic, is_variadic, "{table}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_told_with_its_place() {
        for (table, expected) in [
            (json!({}), "create.table.t: the table is filled, so write is needed"),
            (json!({"wriet": []}), "create.table.t.wriet: unknown field `wriet`, expected one of `key`, `write`, `row`"),
            (json!({"write": ["ZADD", 1]}), "create.table.t.write[1]: invalid type: integer `1`, expected a text with {name}"),
            (json!({"write": ["GET"]}), "create.table.t.write[0]: GET writes no rows; expected one of APPEND, HSET"),
            (json!({"write": ["ZADD", "{tim}", "x"]}), "create.table.t.write[1]: table t has no column tim; expected one of id"),
            (json!({"key": "{x}", "write": ["SET", "x"]}), "create.table.t.key: table t has no column x"),
            (json!({"write": ["SET", "x"], "row": "member"}), "create.table.t.row: a row does not write one member"),
        ] {
            let error = schema(table).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
        let of =
            |schema: serde_json::Value| RedisSchema::of(&serde_json::from_value(schema).unwrap(), "s").unwrap_err().to_string();
        assert_eq!(of(json!({"tables": {"t": []}})), "fill.t: there is no table t; the schema creates none");
        assert!(of(json!({"create": {"table": {"a*": {}}}})).contains("must be a word"));
        assert!(of(json!({"settle": {"statements": []}})).starts_with("settle.statements: unknown field"));
    }
}
