//! Statements with `:named` parameters, rewritten with a database's own placeholders.

use crate::{DriverError, Operation, SchemaError};

/// A statement whose parameters have a database's own placeholders.
#[derive(Clone, Debug, PartialEq)]
pub struct Positional {
    /// The text for the database.
    pub text: String,
    /// For each placeholder in order, the place of the operation's parameter.
    pub parameters: Vec<usize>,
}

/// How a database writes placeholders.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Placeholder {
    /// `?`, once for each use.
    Question,
    /// `$1`, `$2`, …; a parameter that is used twice has one number.
    Dollar,
}

impl Positional {
    /// Rewrites the statement of an operation. Text between quotes and comments stays as it is, and so does `::`.
    pub fn of(operation: &Operation, statement: &str, placeholder: Placeholder) -> Result<Self, DriverError> {
        let mut rest = statement;
        let mut positional = Self { text: String::with_capacity(statement.len()), parameters: Vec::new() };
        while let Some(first) = rest.chars().next() {
            let length = match first {
                '\'' | '"' | '`' => 1 + rest[1..].find(first).map_or(rest.len() - 1, |end| end + 1),
                '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
                '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
                ':' if rest.starts_with("::") => 2,
                ':' if word_length(&rest[1..]) > 0 => {
                    let length = 1 + word_length(&rest[1..]);
                    positional.push(operation, &rest[1..length], placeholder)?;
                    rest = &rest[length..];
                    continue;
                }
                '?' if placeholder == Placeholder::Question => return Err(bare_placeholder(operation, "?")),
                '$' if placeholder == Placeholder::Dollar && rest[1..].starts_with(|c: char| c.is_ascii_digit()) => {
                    return Err(bare_placeholder(operation, "$1"));
                }
                other => other.len_utf8(),
            };
            positional.text.push_str(&rest[..length]);
            rest = &rest[length..];
        }
        Ok(positional)
    }

    fn push(&mut self, operation: &Operation, name: &str, placeholder: Placeholder) -> Result<(), DriverError> {
        let parameter = operation.require_parameter(name)?;
        match placeholder {
            Placeholder::Question => {
                self.parameters.push(parameter);
                self.text.push('?');
            }
            Placeholder::Dollar => {
                let known = self.parameters.iter().position(|place| *place == parameter);
                let place = known.unwrap_or_else(|| {
                    self.parameters.push(parameter);
                    self.parameters.len() - 1
                });
                self.text.push_str(&format!("${}", place + 1));
            }
        }
        Ok(())
    }
}

fn word_length(text: &str) -> usize {
    if !text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        return 0;
    }
    text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len())
}

fn bare_placeholder(operation: &Operation, found: &str) -> DriverError {
    let path = format!("operation.{}.statement", operation.name);
    SchemaError::at(path, format!("parameters must be written as :name, not as {found}")).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Parameter, Type};

    fn operation() -> Operation {
        let parameter = |name: &str| Parameter { name: name.to_owned(), value_type: Type::Integer };
        Operation {
            name: "q".to_owned(),
            parameters: vec![parameter("a"), parameter("b")],
            columns: Vec::new(),
            order: Vec::new(),
            statement: serde_json::Value::Null,
        }
    }

    #[test]
    fn parameters_become_placeholders() {
        let of = |text, placeholder| Positional::of(&operation(), text, placeholder).unwrap();
        let text = "SELECT :b, :a::int, ':a', \"x:b\" -- :a\nFROM t /* :b */ WHERE é = :b";
        let dollar = of(text, Placeholder::Dollar);
        assert_eq!(dollar.text, "SELECT $1, $2::int, ':a', \"x:b\" -- :a\nFROM t /* :b */ WHERE é = $1");
        assert_eq!(dollar.parameters, [1, 0]);
        let question = of(text, Placeholder::Question);
        assert_eq!(question.text, "SELECT ?, ?::int, ':a', \"x:b\" -- :a\nFROM t /* :b */ WHERE é = ?");
        assert_eq!(question.parameters, [1, 0, 1]);
    }

    #[test]
    fn what_is_no_parameter_is_refused() {
        let refused = |text, placeholder| Positional::of(&operation(), text, placeholder).unwrap_err().to_string();
        assert!(refused("SELECT :c", Placeholder::Dollar).contains("has no parameter :c; expected one of :a, :b"));
        assert!(refused("SELECT ?", Placeholder::Question).contains("must be written as :name"));
        assert!(refused("SELECT $1", Placeholder::Dollar).contains("must be written as :name"));
    }
}
