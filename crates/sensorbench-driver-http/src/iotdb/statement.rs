//! Statements with `:named` parameters. The REST service binds none, so values become literals here, by their type and nowhere else.

use std::fmt::Write;

use sensorbench_driver::{ConversionError, DriverError, Operation, Value, ValueRef};

use super::precision::Precision;
use super::tree;
use crate::sql::pieces;
use crate::template::{Form, Piece, append_number};

/// The statement of an operation. Parameters are `:name`, and `:name@text` where they are compared with a tag, or are a node of a path.
#[derive(Clone, Debug)]
pub struct Statement {
    pieces: Vec<Piece>,
    /// Whether it is one of the tree model.
    pub is_tree: bool,
}

impl Statement {
    /// Takes the statement of an operation apart; one of the tree model has its tables in a namespace.
    pub fn of(operation: &Operation, tree: Option<&str>) -> Result<Self, DriverError> {
        let forms = "parameters are written as :name or :name@text";
        let mut pieces = pieces(operation, |form| form != Form::Micros, forms)?;
        if let Some(namespace) = tree {
            pieces.iter_mut().for_each(|piece| {
                if let Piece::Text(text) = piece {
                    *text = tree::placed(text, namespace);
                }
            });
        }
        Ok(Self { pieces, is_tree: tree.is_some() })
    }

    /// The text with these values of the operation's parameters.
    pub fn text(&self, precision: Precision, parameters: &[Value]) -> Result<String, DriverError> {
        let mut text = String::with_capacity(256);
        for piece in &self.pieces {
            let appended = match piece {
                Piece::Value(place, Form::Text) if self.is_tree => {
                    tree::node(parameters[*place].as_ref()).map(|node| text.push_str(&node))
                }
                Piece::Value(place, Form::Text) => append_tag(&mut text, parameters[*place].as_ref()),
                Piece::Value(place, _) => append_literal(&mut text, precision, parameters[*place].as_ref()),
                Piece::Text(piece) | Piece::Own(piece) => {
                    text.push_str(piece);
                    Ok(())
                }
                Piece::Identifier(_) => unreachable!("the language has none"),
            };
            appended.map_err(|error| DriverError::Data(error.to_string()))?;
        }
        Ok(text)
    }
}

/// A value as the text that a tag has.
fn append_tag(text: &mut String, value: ValueRef) -> Result<(), ConversionError> {
    append_text(text, &crate::template::tag_text(value)?);
    Ok(())
}

/// Appends a value that the server reads as exactly this one, whatever stands next to it.
fn append_literal(text: &mut String, precision: Precision, value: ValueRef) -> Result<(), ConversionError> {
    match value {
        ValueRef::Null => text.push_str("NULL"),
        ValueRef::Boolean(value) => text.push_str(if value { "true" } else { "false" }),
        ValueRef::Timestamp(time_us) => write!(text, "{}", precision.time(time_us)?).expect("memory takes everything"),
        ValueRef::Integer(_) | ValueRef::Double(_) => append_number(text, value)?,
        ValueRef::Text(value) => append_text(text, value),
        ValueRef::Bytes(_) => return Err(ConversionError("bytes cannot stand in a statement".to_owned())),
    }
    Ok(())
}

/// A text between single quotes, which are doubled within it.
fn append_text(text: &mut String, value: &str) {
    write!(text, "'{}'", value.replace('\'', "''")).expect("memory takes everything");
}

/// A text as it stands in the driver's own statements.
pub fn literal(value: &str) -> String {
    let mut text = String::new();
    append_text(&mut text, value);
    text
}

#[cfg(test)]
mod tests {
    use sensorbench_driver::{Parameter, Type};

    use super::*;

    #[test]
    fn values_stand_in_statements_as_literals_of_their_type() {
        let parameter = |name: &str, value_type| Parameter { name: name.to_owned(), value_type };
        let operation = |statement: &str| Operation {
            name: "q".to_owned(),
            parameters: vec![parameter("a", Type::Integer), parameter("b", Type::Text), parameter("t", Type::Timestamp)],
            columns: Vec::new(),
            order: Vec::new(),
            statement: serde_json::json!({"statement": statement}),
        };
        let statement =
            Statement::of(&operation("SELECT ':a' FROM r WHERE a = :a@text AND n = :a AND b = :b AND time = :t;"), None).unwrap();
        let values = [Value::Integer(-7), Value::Text("' OR 1 = 1 -- \\".into()), Value::Timestamp(2_000)];
        assert_eq!(
            statement.text(Precision::Micros, &values).unwrap(),
            "SELECT ':a' FROM r WHERE a = '-7' AND n = -7 AND b = ''' OR 1 = 1 -- \\' AND time = 2000"
        );
        assert!(statement.text(Precision::Millis, &values).unwrap().ends_with("time = 2"));
        let finer = [values[0].clone(), values[1].clone(), Value::Timestamp(2_001)];
        assert!(statement.text(Precision::Millis, &finer).unwrap_err().to_string().contains("timestamp_precision"));
        assert!(
            Statement::of(&operation("SELECT :a@us"), None).is_err() && Statement::of(&operation("SELECT :c"), None).is_err()
        );
        let of_tree = Statement::of(&operation("SELECT v FROM {r}.:a@text.:b@text WHERE v = :b"), Some("d")).unwrap();
        let hostile = [Value::Integer(7), Value::Text("x`.** --'".into()), Value::Timestamp(0)];
        assert_eq!(
            of_tree.text(Precision::Micros, &hostile).unwrap(),
            "SELECT v FROM root.d_tree.r.`7`.`x``.** --'` WHERE v = 'x`.** --'''"
        );
    }
}
