//! In which line of a TOML file a key stands, so that an error can say so.

use std::collections::HashMap;

use pyo3::prelude::*;
use toml::de::{DeTable, DeValue};

use crate::errors::UsageError;

/// The line of every key, by its path (`operation.get_peak_data.statement`, `target[0].url`). A text that is not TOML raises
/// with (line, message).
#[pyfunction]
pub fn toml_lines(text: &str) -> PyResult<HashMap<String, usize>> {
    let line_of = |offset: usize| text[..offset.min(text.len())].matches('\n').count() + 1;
    let document = DeTable::parse(text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_of(span.start));
        UsageError::new_err((line, error.message().to_owned()))
    })?;
    let mut lines = HashMap::new();
    add_table("", document.get_ref(), &line_of, &mut lines);
    Ok(lines)
}

fn add_table(path: &str, table: &DeTable, line_of: &impl Fn(usize) -> usize, lines: &mut HashMap<String, usize>) {
    for (key, value) in table {
        let path = if path.is_empty() { key.get_ref().to_string() } else { format!("{path}.{}", key.get_ref()) };
        lines.insert(path.clone(), line_of(key.span().start));
        add_value(&path, value.get_ref(), line_of, lines);
    }
}

fn add_value(path: &str, value: &DeValue, line_of: &impl Fn(usize) -> usize, lines: &mut HashMap<String, usize>) {
    match value {
        DeValue::Table(table) => add_table(path, table, line_of, lines),
        DeValue::Array(array) => {
            for (number, item) in array.iter().enumerate() {
                let path = format!("{path}[{number}]");
                lines.insert(path.clone(), line_of(item.span().start));
                add_value(&path, item.get_ref(), line_of, lines);
            }
        }
        _ => {}
    }
}
