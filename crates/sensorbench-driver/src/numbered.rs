//! Templates of traces, rewritten for databases whose placeholders have no numbers.

use crate::{DriverError, Literal, Positional};

/// How a text between quotes contains a quote.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quotes {
    /// Written twice.
    Doubled,
    /// Written twice, or after a backslash.
    Escaped,
}

impl Positional {
    /// Writes a template with `?` in the places of `$1`, `$2`, …: the parameter of each is the place of its literal, from 0. Text between
    /// quotes and comments stays as it is.
    pub fn of_template(template: &str, quotes: Quotes) -> Self {
        let mut rest = template;
        let mut positional = Self { text: String::with_capacity(template.len()), parameters: Vec::new() };
        let mut is_in_word = false;
        while let Some(first) = rest.chars().next() {
            let length = match first {
                '$' if !is_in_word && placeholder(rest).is_some() => {
                    let (place, length) = placeholder(rest).expect("was just seen");
                    positional.parameters.push(place);
                    positional.text.push('?');
                    rest = &rest[length..];
                    continue;
                }
                '\'' | '"' | '`' => quoted_length(rest, first, quotes),
                '-' if is_comment(rest, quotes) => rest.find('\n').unwrap_or(rest.len()),
                '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
                other => other.len_utf8(),
            };
            is_in_word = first.is_alphanumeric() || matches!(first, '_' | '$');
            positional.text.push_str(&rest[..length]);
            rest = &rest[length..];
        }
        positional
    }

    /// The literals of a statement in the places of its template. Fails where the trace has another number of them.
    pub fn placed<'a>(&'a self, literals: &'a [Literal]) -> Result<impl Iterator<Item = &'a Literal>, DriverError> {
        check_literals(self.parameters.iter().max().map_or(0, |place| place + 1), literals)?;
        Ok(self.parameters.iter().map(|place| &literals[*place]))
    }
}

/// A statement has as many literals as its template has parameters.
pub fn check_literals(expected: usize, literals: &[Literal]) -> Result<(), DriverError> {
    if expected == literals.len() {
        return Ok(());
    }
    let found = literals.len();
    Err(DriverError::Data(format!("the statement has {expected} parameters, the trace {found} literals")))
}

/// The literal's place and the length of the placeholder that a text begins with.
fn placeholder(text: &str) -> Option<(usize, usize)> {
    let digits = text[1..].find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len() - 1);
    let number: usize = text[1..=digits].parse().ok()?;
    Some((number.checked_sub(1)?, 1 + digits))
}

/// Two minus signs begin a comment; where quotes may be escaped, only before white space.
fn is_comment(text: &str, quotes: Quotes) -> bool {
    text.strip_prefix("--").is_some_and(|after| quotes == Quotes::Doubled || after.chars().next().is_none_or(char::is_whitespace))
}

fn quoted_length(text: &str, quote: char, quotes: Quotes) -> usize {
    let may_escape = quotes == Quotes::Escaped && quote != '`';
    let mut is_escaped = false;
    for (place, found) in text.char_indices().skip(1) {
        if is_escaped {
            is_escaped = false;
        } else if may_escape && found == '\\' {
            is_escaped = true;
        } else if found == quote {
            return place + 1;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_places() {
        for (template, quotes, text, places) in [
            ("SELECT $2, $1,$1", Quotes::Doubled, "SELECT ?, ?,?", vec![1, 0, 0]),
            ("v = $12 AND a$1 = $0", Quotes::Doubled, "v = ? AND a$1 = $0", vec![11]),
            ("'$1' \"$1\" 'it''s $1' $1 -- $1\n/* $1 */", Quotes::Doubled, "'$1' \"$1\" 'it''s $1' ? -- $1\n/* $1 */", vec![0]),
            (r"'\'$1' = $1", Quotes::Escaped, r"'\'$1' = ?", vec![0]),
            (r"'\' = $1", Quotes::Doubled, r"'\' = ?", vec![0]),
            ("5--$1 `a$1` -- $2", Quotes::Escaped, "5--? `a$1` -- $2", vec![0]),
            ("'é$1", Quotes::Escaped, "'é$1", vec![]),
        ] {
            let positional = Positional::of_template(template, quotes);
            assert_eq!((positional.text.as_str(), positional.parameters), (text, places), "{template}");
        }
    }

    #[test]
    fn a_literal_stands_in_each_of_its_places() {
        let template = Positional::of_template("SELECT $2, $1, $2", Quotes::Doubled);
        let literals = [Literal::Null, Literal::Boolean(true)];
        let placed: Vec<_> = template.placed(&literals).unwrap().collect();
        assert_eq!(placed, [&literals[1], &literals[0], &literals[1]]);
        let refused = template.placed(&literals[..1]).err().unwrap().to_string();
        assert_eq!(refused, "the statement has 2 parameters, the trace 1 literals");
    }
}
