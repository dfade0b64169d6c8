//! The literals of a recorded statement.

use sensorbench_driver::Literal;

/// Reads a JSON array of literals: texts lose their quotes, numbers stay as they are written. None if it is no such array.
pub fn parse_literals(json: &str) -> Option<Vec<Literal>> {
    let mut rest = json.trim().strip_prefix('[')?.trim_start();
    let mut literals = Vec::new();
    if let Some(end) = rest.strip_prefix(']') {
        return end.is_empty().then_some(literals);
    }
    loop {
        let length = if rest.starts_with('"') { text_length(rest)? } else { rest.find([',', ']'])? };
        let (written, after) = rest.split_at(length);
        literals.push(literal(written.trim_end())?);
        rest = after.trim_start();
        match rest.strip_prefix(',') {
            Some(next) => rest = next.trim_start(),
            None => return (rest == "]").then_some(literals),
        }
    }
}

/// Bytes of the text that `json` begins with, its quotes included.
fn text_length(json: &str) -> Option<usize> {
    let mut escaped = false;
    let end = json.bytes().skip(1).position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    })?;
    Some(end + 2)
}

fn literal(written: &str) -> Option<Literal> {
    match written.as_bytes().first()? {
        b'"' => serde_json::from_str(written).ok().map(Literal::Text),
        b'n' => (written == "null").then_some(Literal::Null),
        b't' | b'f' => serde_json::from_str(written).ok().map(Literal::Boolean),
        _ => serde_json::from_str::<serde_json::Number>(written).ok().map(|_| Literal::Number(written.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(json: &str) -> Option<Vec<String>> {
        let shown = |literal: Literal| literal.text().unwrap_or("NULL").to_owned();
        parse_literals(json).map(|literals| literals.into_iter().map(shown).collect())
    }

    #[test]
    fn literals_keep_their_digits_and_lose_their_quotes() {
        let words = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(parsed("[]"), words(&[]));
        assert_eq!(
            parsed(r#" [1, -2.50 ,12345678901234567890.123456789] "#),
            words(&["1", "-2.50", "12345678901234567890.123456789"])
        );
        assert_eq!(parsed(r#"["a,b]", "say \"x\\\"", null, true,"é"]"#), words(&["a,b]", r#"say "x\""#, "NULL", "true", "é"]));
    }

    #[test]
    fn a_text_of_digits_is_no_number() {
        assert_eq!(parse_literals(r#"[5, "5"]"#), Some(vec![Literal::Number("5".to_owned()), Literal::Text("5".to_owned())]));
    }

    #[test]
    fn what_is_no_array_of_literals_is_none() {
        for json in ["", "[", "[1", "[1,]", "[1]2", "{}", r#"["a]"#, "[[1]]", "[nul]", "[1 2]", "[tru]"] {
            assert_eq!(parsed(json), None, "{json}");
        }
    }
}
