//! Statements with `:named` parameters. Servers of 2018 bind none, so values become literals here, by their type and nowhere else.

use std::fmt::Write;

use sensorbench_driver::{DriverError, Operation, Value, ValueRef};

use crate::sql::pieces;
use crate::template::{Form, Piece};

/// The statement of an operation.
#[derive(Clone, Debug)]
pub struct Statement {
    pieces: Vec<Piece>,
}

impl Statement {
    /// Takes the statement of an operation apart.
    pub fn of(operation: &Operation) -> Result<Self, DriverError> {
        let forms = "parameters are written as :name; use the server's functions for other forms";
        Ok(Self { pieces: pieces(operation, |form| form == Form::Plain, forms)? })
    }

    /// The text with these values of the operation's parameters.
    pub fn text(&self, parameters: &[Value]) -> String {
        let mut text = String::with_capacity(256);
        for piece in &self.pieces {
            match piece {
                Piece::Value(place, _) => append_literal(&mut text, parameters[*place].as_ref()),
                Piece::Text(piece) | Piece::Own(piece) => text.push_str(piece),
                Piece::Identifier(_) => unreachable!("the language has none"),
            }
        }
        text
    }
}

/// Appends a value that the server reads as exactly this one, whatever stands beside it. A time is a number of µs since 1970.
pub fn append_literal(text: &mut String, value: ValueRef) {
    match value {
        ValueRef::Null => text.push_str("NULL"),
        ValueRef::Boolean(value) => text.push(if value { '1' } else { '0' }),
        // A minus beside another would begin a comment.
        ValueRef::Integer(number) | ValueRef::Timestamp(number) if number < 0 => {
            write!(text, "({number})").expect("memory takes everything");
        }
        ValueRef::Integer(number) | ValueRef::Timestamp(number) => {
            write!(text, "{number}").expect("memory takes everything");
        }
        // The decimal digits of a double are not read exactly by every version.
        ValueRef::Double(number) => {
            text.push_str("reinterpretAsFloat64(");
            append_bytes(text, &number.to_le_bytes());
            text.push(')');
        }
        ValueRef::Text(value) => append_text(text, value),
        ValueRef::Bytes(bytes) => append_bytes(text, bytes),
    }
}

/// A text between single quotes, in which a backslash takes the meaning of what follows it.
fn append_text(text: &mut String, value: &str) {
    text.push('\'');
    for character in value.chars() {
        match character {
            '\'' | '\\' => {
                text.push('\\');
                text.push(character);
            }
            '\0' => text.push_str("\\0"),
            other => text.push(other),
        }
    }
    text.push('\'');
}

fn append_bytes(text: &mut String, bytes: &[u8]) {
    text.push_str("unhex('");
    for byte in bytes {
        write!(text, "{byte:02x}").expect("memory takes everything");
    }
    text.push_str("')");
}

/// A name, between the quotes that the server has for names.
pub fn name(name: &str) -> String {
    format!("`{}`", name.replace('\\', "\\\\").replace('`', "\\`"))
}

#[cfg(test)]
mod tests {
    use sensorbench_driver::{Parameter, Type};

    use super::*;

    fn of(statement: &str) -> Result<Statement, String> {
        let parameter = |name: &str, value_type| Parameter { name: name.to_owned(), value_type };
        let operation = Operation {
            name: "q".to_owned(),
            parameters: vec![parameter("a", Type::Integer), parameter("b", Type::Text)],
            columns: Vec::new(),
            order: Vec::new(),
            statement: serde_json::json!({"statement": statement}),
        };
        Statement::of(&operation).map_err(|error| error.to_string())
    }

    #[test]
    fn values_stand_in_statements_as_literals_of_their_type() {
        let statement = of("SELECT ':a', x::Int8 FROM t WHERE a = :a AND b = :b;").unwrap();
        let hostile = "' OR 1 = 1 -- \\";
        assert_eq!(
            statement.text(&[Value::Integer(i64::MIN), Value::Text(hostile.into())]),
            "SELECT ':a', x::Int8 FROM t WHERE a = (-9223372036854775808) AND b = '\\' OR 1 = 1 -- \\\\'"
        );
        assert!(of("SELECT :c").unwrap_err().contains("has no parameter :c"));
        assert!(of("SELECT :a@text").unwrap_err().contains("operation.q.statement: parameters are written as :name"));
        assert_eq!(name("a`b\\"), "`a\\`b\\\\`");
    }
}
