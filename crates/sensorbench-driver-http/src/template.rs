//! Statements with `:named` parameters. What a parameter's value becomes is decided here, by its type, and nowhere else.

use std::fmt::Write;

use sensorbench_driver::{ConversionError, DriverError, Operation, SchemaError, ValueRef};

/// A statement, taken apart at its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Template(pub Vec<Piece>);

/// A piece of a statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// Stands there as it is.
    Text(String),
    /// `:name`, `:name@form`: the value of a parameter.
    Value(usize, Form),
    /// `":name"`: a name made of a parameter's text.
    Identifier(usize),
    /// `::name`: something of sensorbench's own at the server.
    Own(String),
}

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    /// By its type.
    Plain,
    /// As text: what tags are compared with.
    Text,
    /// A time as a number of µs: what fields are compared with.
    Micros,
}

/// What a language has besides `:name`.
#[derive(Clone, Copy, Debug)]
pub struct Language {
    /// Whether `":name"` is a name that a parameter brings.
    pub identifiers: bool,
    /// Whether `::name` is something of sensorbench's own; else it stays.
    pub own: bool,
}

impl Template {
    /// Takes the statement of an operation apart. Text between quotes stays as it is.
    pub fn of(operation: &Operation, path: &str, statement: &str, language: Language) -> Result<Self, DriverError> {
        let mut pieces = Vec::new();
        let mut text = String::new();
        let mut rest = statement;
        while let Some(first) = rest.chars().next() {
            let mut push = |piece, pieces: &mut Vec<Piece>| {
                if !text.is_empty() {
                    pieces.push(Piece::Text(std::mem::take(&mut text)));
                }
                pieces.push(piece);
            };
            let length = match first {
                '\'' | '"' => {
                    let length = quoted_length(rest);
                    let inner = rest[1..length].strip_suffix(first).unwrap_or(&rest[1..length]);
                    match inner.strip_prefix(':') {
                        Some(name)
                            if first == '"' && language.identifiers && word_length(name) == name.len() && !name.is_empty() =>
                        {
                            push(Piece::Identifier(operation.require_parameter(name)?), &mut pieces);
                            rest = &rest[length..];
                            continue;
                        }
                        _ => length,
                    }
                }
                ':' if rest.starts_with("::") => {
                    let length = word_length(&rest[2..]);
                    if language.own && length > 0 {
                        push(Piece::Own(rest[2..2 + length].to_owned()), &mut pieces);
                        rest = &rest[2 + length..];
                        continue;
                    }
                    2
                }
                ':' if word_length(&rest[1..]) > 0 => {
                    let end = 1 + word_length(&rest[1..]);
                    let place = operation.require_parameter(&rest[1..end])?;
                    let form_length = rest[end..].strip_prefix('@').map_or(0, word_length);
                    let (form, end) =
                        match (form_length, &rest[(end + 1).min(rest.len())..(end + 1 + form_length).min(rest.len())]) {
                            (0, _) => (Form::Plain, end),
                            (_, "text") => (Form::Text, end + 1 + form_length),
                            (_, "us") => (Form::Micros, end + 1 + form_length),
                            (_, other) => {
                                let message = format!("{}@{other}: expected @text or @us", &rest[..end]);
                                return Err(SchemaError::at(path, message).into());
                            }
                        };
                    push(Piece::Value(place, form), &mut pieces);
                    rest = &rest[end..];
                    continue;
                }
                other => other.len_utf8(),
            };
            text.push_str(&rest[..length]);
            rest = &rest[length..];
        }
        if !text.is_empty() {
            pieces.push(Piece::Text(text));
        }
        Ok(Self(pieces))
    }

    /// The pieces with `$p0`, `$p1`, … in place of values, and what the server binds to these, in order. What occurs again is bound once.
    pub fn bound(self) -> (Vec<Piece>, Vec<(usize, Form)>) {
        let mut bound: Vec<(usize, Form)> = Vec::new();
        let pieces = self.0.into_iter().map(|piece| match piece {
            Piece::Value(place, form) => {
                let number = bound.iter().position(|known| *known == (place, form)).unwrap_or_else(|| {
                    bound.push((place, form));
                    bound.len() - 1
                });
                Piece::Text(format!("$p{number}"))
            }
            other => other,
        });
        (pieces.collect(), bound)
    }
}

/// The length of what begins with a quote, its end included. A backslash takes the meaning of what follows it.
fn quoted_length(text: &str) -> usize {
    let quote = text.as_bytes()[0];
    let mut at = 1;
    while let Some(byte) = text.as_bytes().get(at) {
        at += match byte {
            b'\\' => 2,
            byte if *byte == quote => return at + 1,
            _ => 1,
        };
    }
    text.len()
}

fn word_length(text: &str) -> usize {
    if !text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        return 0;
    }
    text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len())
}

/// A value as the text that a tag has.
pub fn tag_text(value: ValueRef) -> Result<String, ConversionError> {
    match value {
        ValueRef::Text(text) => Ok(text.to_owned()),
        ValueRef::Integer(_) | ValueRef::Boolean(_) => Ok(value.to_string()),
        other => Err(ConversionError(format!("{other} cannot be compared with a tag"))),
    }
}

/// A number as JSON and query languages write it; a double is never written like an integer.
pub fn append_number(text: &mut String, value: ValueRef) -> Result<(), ConversionError> {
    match value {
        ValueRef::Integer(number) => write!(text, "{number}").expect("memory takes everything"),
        ValueRef::Double(number) if number.is_finite() => text.push_str(ryu::Buffer::new().format_finite(number)),
        other => return Err(ConversionError(format!("{other} is not a number that a statement can have"))),
    }
    Ok(())
}

/// A text between double quotes, with what it holds escaped: JSON, and a string of PromQL.
pub fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a text is JSON")
}

/// A name between double quotes, as InfluxQL has it. What no name can hold is refused.
pub fn identifier(value: ValueRef) -> Result<String, ConversionError> {
    match value {
        ValueRef::Text(name) if !name.is_empty() && !name.contains(|c: char| c.is_control()) => {
            Ok(format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\"")))
        }
        other => Err(ConversionError(format!("{other} cannot be a name"))),
    }
}

#[cfg(test)]
mod tests {
    use sensorbench_driver::{Parameter, Type};

    use super::*;

    fn of(statement: &str, language: Language) -> Result<Template, String> {
        let parameter = |name: &str, value_type| Parameter { name: name.to_owned(), value_type };
        let operation = Operation {
            name: "q".to_owned(),
            parameters: vec![parameter("a", Type::Integer), parameter("b", Type::Text)],
            columns: Vec::new(),
            order: Vec::new(),
            statement: serde_json::Value::Null,
        };
        Template::of(&operation, "operation.q.query", statement, language).map_err(|error| error.to_string())
    }

    const INFLUXQL: Language = Language { identifiers: true, own: false };
    const PROMQL: Language = Language { identifiers: false, own: true };

    #[test]
    fn statements_are_taken_apart_at_their_parameters() {
        let text = |text: &str| Piece::Text(text.to_owned());
        assert_eq!(
            of(
                "SELECT \":b\", \"x:b\" FROM m WHERE s = :a@text AND t > :a AND f = :a@us AND x = ':a \\' :b' AND h::tag = é",
                INFLUXQL
            ),
            Ok(Template(vec![
                text("SELECT "),
                Piece::Identifier(1),
                text(", \"x:b\" FROM m WHERE s = "),
                Piece::Value(0, Form::Text),
                text(" AND t > "),
                Piece::Value(0, Form::Plain),
                text(" AND f = "),
                Piece::Value(0, Form::Micros),
                text(" AND x = ':a \\' :b' AND h::tag = é"),
            ]))
        );
        assert_eq!(
            of("max(::m_v{s=:b})", PROMQL),
            Ok(Template(vec![text("max("), Piece::Own("m_v".to_owned()), text("{s="), Piece::Value(1, Form::Plain), text("})")]))
        );
        assert!(of("x = :c", INFLUXQL).unwrap_err().contains("has no parameter :c; expected one of :a, :b"));
        assert!(of("x = :a@day", INFLUXQL).unwrap_err().contains(":a@day: expected @text or @us"));
    }

    #[test]
    fn nothing_is_spliced_into_a_statement() {
        let hostile = "x\" OR \"1\"=\"1'; DROP DATABASE d --\\\n";
        assert_eq!(quoted(hostile), r#""x\" OR \"1\"=\"1'; DROP DATABASE d --\\\n""#);
        assert!(identifier(ValueRef::Text(hostile)).is_err(), "a line end is in no name");
        assert_eq!(identifier(ValueRef::Text("a\" FROM b --\\")).unwrap(), "\"a\\\" FROM b --\\\\\"");
        assert!(identifier(ValueRef::Integer(1)).is_err());
        assert!(identifier(ValueRef::Text("")).is_err());
        assert!(tag_text(ValueRef::Null).is_err());
    }

    #[test]
    fn doubles_are_never_written_like_integers() {
        let number = |value| {
            let mut text = String::new();
            append_number(&mut text, value).map(|()| text)
        };
        assert_eq!(number(ValueRef::Double(5.0)).unwrap(), "5.0");
        assert_eq!(number(ValueRef::Integer(i64::MIN)).unwrap(), "-9223372036854775808");
        assert!(
            number(ValueRef::Double(f64::NAN)).is_err()
                && number(ValueRef::Null).is_err()
                && number(ValueRef::Text("1")).is_err()
        );
    }
}
