//! What an answer said, in a few bytes, so that answers of different databases can be compared.

use xxhash_rust::xxh3::xxh3_64;

use crate::{Direction, Operation, RowRef, Rows, ValueRef};

/// What is compared of an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Digest {
    /// Number of rows.
    pub rows: u64,
    /// Sum (modulo 2^64) of the hashes of the rows: equal for the same rows in any order, and different when a row is
    /// there twice. The hash of a row is XXH3-64 over its values in the columns' order: one byte for the type (0 null,
    /// 1 boolean, 2 integer, 3 double, 4 timestamp, 5 text, 6 bytes), then 1 or 8 little-endian bytes, or a length of 8
    /// bytes and the bytes. −0.0 counts as 0.0, and every NaN as the same one. Computed columns are left out.
    pub hash: u64,
    /// Whether the rows came in the declared order; None when none is declared.
    pub in_order: Option<bool>,
    /// Values of computed columns, row by row, rows sorted by their hash; null is NaN.
    pub computed: Vec<f64>,
}

/// The digest of the answer to an operation.
pub fn digest(rows: &Rows, operation: &Operation) -> Digest {
    let mut row_bytes = Vec::with_capacity(64);
    let mut digest = Digest { rows: rows.len(), ..Digest::default() };
    let mut computed: Vec<(u64, Vec<f64>)> = Vec::new();
    for row in rows.iter() {
        row_bytes.clear();
        let mut values = Vec::new();
        for (number, column) in operation.columns.iter().enumerate().take(row.columns()) {
            match row.value(number) {
                value if !column.computed => append(&mut row_bytes, value),
                ValueRef::Double(value) => values.push(value),
                _ => values.push(f64::NAN),
            }
        }
        let hash = xxh3_64(&row_bytes);
        digest.hash = digest.hash.wrapping_add(hash);
        if !values.is_empty() {
            computed.push((hash, values));
        }
    }
    computed.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| compare_slices(&a.1, &b.1)));
    digest.computed = computed.into_iter().flat_map(|(_, values)| values).collect();
    digest.in_order = in_order(rows, operation);
    digest
}

/// The digest of an answer of which no columns are declared: all of them are hashed, in any order of the rows.
pub fn digest_of_all_columns(rows: &Rows) -> Digest {
    let mut row_bytes = Vec::with_capacity(64);
    let mut hash = 0_u64;
    for row in rows.iter() {
        hash = hash.wrapping_add(row_hash((0..row.columns()).map(|column| row.value(column)), &mut row_bytes));
    }
    Digest { rows: rows.len(), hash, ..Digest::default() }
}

/// The hash of a row, of which digests have the sum; `bytes` is memory that is used again.
pub fn row_hash<'a>(values: impl Iterator<Item = ValueRef<'a>>, bytes: &mut Vec<u8>) -> u64 {
    bytes.clear();
    values.for_each(|value| append(bytes, value));
    xxh3_64(bytes)
}

fn append(bytes: &mut Vec<u8>, value: ValueRef) {
    match value {
        ValueRef::Null => bytes.push(0),
        ValueRef::Boolean(value) => bytes.extend([1, u8::from(value)]),
        ValueRef::Integer(value) => append_number(bytes, 2, value as u64),
        ValueRef::Double(value) => append_number(bytes, 3, canonical(value).to_bits()),
        ValueRef::Timestamp(value) => append_number(bytes, 4, value as u64),
        ValueRef::Text(value) => append_long(bytes, 5, value.as_bytes()),
        ValueRef::Bytes(value) => append_long(bytes, 6, value),
    }
}

/// In one piece, because growth of the memory is looked at for each.
fn append_number(bytes: &mut Vec<u8>, tag: u8, number: u64) {
    let mut tagged = [tag; 9];
    tagged[1..].copy_from_slice(&number.to_le_bytes());
    bytes.extend_from_slice(&tagged);
}

fn append_long(bytes: &mut Vec<u8>, tag: u8, value: &[u8]) {
    append_number(bytes, tag, value.len() as u64);
    bytes.extend_from_slice(value);
}

fn canonical(value: f64) -> f64 {
    if value.is_nan() {
        f64::NAN
    } else if value == 0.0 {
        0.0
    } else {
        value
    }
}

fn compare_slices(a: &[f64], b: &[f64]) -> std::cmp::Ordering {
    let different = |(a, b): (&f64, &f64)| Some(a.total_cmp(b)).filter(|order| order.is_ne());
    a.iter().zip(b).find_map(different).unwrap_or(std::cmp::Ordering::Equal)
}

fn in_order(rows: &Rows, operation: &Operation) -> Option<bool> {
    if operation.order.is_empty() {
        return None;
    }
    let place = |name: &String| operation.columns.iter().position(|column| column.name == *name);
    let keys: Vec<(usize, Direction)> =
        operation.order.iter().filter_map(|order| Some((place(&order.column)?, order.direction))).collect();
    let mut previous: Option<RowRef> = None;
    for row in rows.iter() {
        if previous.is_some_and(|previous| comes_before(&row, &previous, &keys)) {
            return Some(false);
        }
        previous = Some(row);
    }
    Some(true)
}

fn comes_before(row: &RowRef, other: &RowRef, keys: &[(usize, Direction)]) -> bool {
    for (column, direction) in keys {
        let order = compare(row.value(*column), other.value(*column));
        let order = if *direction == Direction::Descending { order.reverse() } else { order };
        if order.is_ne() {
            return order.is_lt();
        }
    }
    false
}

/// The order of two values of one type. Text sorts by its bytes; null and values of different types are not ordered.
fn compare(a: ValueRef, b: ValueRef) -> std::cmp::Ordering {
    match (a, b) {
        (ValueRef::Boolean(a), ValueRef::Boolean(b)) => a.cmp(&b),
        (ValueRef::Integer(a), ValueRef::Integer(b)) | (ValueRef::Timestamp(a), ValueRef::Timestamp(b)) => a.cmp(&b),
        (ValueRef::Double(a), ValueRef::Double(b)) => a.total_cmp(&b),
        (ValueRef::Text(a), ValueRef::Text(b)) => a.cmp(b),
        (ValueRef::Bytes(a), ValueRef::Bytes(b)) => a.cmp(b),
        _ => std::cmp::Ordering::Equal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Column, Order, Type};

    fn operation(computed: bool, order: &[(&str, Direction)]) -> Operation {
        let column = |name: &str, value_type, computed| Column { name: name.to_owned(), value_type, computed };
        Operation {
            name: "read".to_owned(),
            parameters: Vec::new(),
            columns: vec![column("time", Type::Timestamp, false), column("value", Type::Double, computed)],
            order: order
                .iter()
                .map(|(column, direction)| Order { column: (*column).to_owned(), direction: *direction })
                .collect(),
            statement: serde_json::Value::Null,
        }
    }

    fn rows(values: &[(i64, f64)]) -> Rows {
        let mut rows = Rows::new();
        for (time, value) in values {
            rows.push(ValueRef::Timestamp(*time));
            rows.push(ValueRef::Double(*value));
            rows.end_row();
        }
        rows
    }

    #[test]
    fn the_hash_is_free_of_order_but_not_of_repetition() {
        let of = |values: &[(i64, f64)]| digest(&rows(values), &operation(false, &[]));
        assert_eq!(of(&[(1, 0.5), (2, 0.5)]), of(&[(2, 0.5), (1, 0.5)]));
        assert_ne!(of(&[(1, 0.5), (1, 0.5)]).hash, of(&[(2, 0.5), (2, 0.5)]).hash);
        assert_ne!(of(&[(1, 0.5)]).hash, of(&[(1, 0.5), (1, 0.5)]).hash);
        assert_ne!(of(&[(1, 0.5)]).hash, of(&[(1, 0.5000000000000001)]).hash);
        assert_eq!(of(&[(1, 0.0)]), of(&[(1, -0.0)]));
        assert_eq!(of(&[]).hash, 0);
    }

    #[test]
    fn a_row_hash_is_the_published_function_of_its_bytes() {
        // XXH3-64 of the bytes 04 0100000000000000 03 000000000000e03f, by Python's xxhash 3.
        assert_eq!(digest(&rows(&[(1, 0.5)]), &operation(false, &[])).hash, 0xf21d_3507_18b3_9a13);
    }

    #[test]
    fn computed_columns_are_kept_by_value() {
        let digest = |values| digest(&rows(values), &operation(true, &[]));
        let (a, b) = (digest(&[(1, 0.1), (2, 0.2)]), digest(&[(2, 0.2), (1, 0.1 + 1e-12)]));
        assert_eq!(a.hash, b.hash);
        assert_eq!((a.computed.len(), b.computed.len()), (2, 2));
        assert!(a.computed.iter().zip(&b.computed).all(|(a, b)| (a - b).abs() < 1e-9));
    }

    #[test]
    fn a_declared_order_is_checked() {
        let descending = operation(false, &[("time", Direction::Descending)]);
        assert_eq!(digest(&rows(&[(3, 1.0), (2, 9.0), (2, 1.0)]), &descending).in_order, Some(true));
        assert_eq!(digest(&rows(&[(2, 1.0), (3, 1.0)]), &descending).in_order, Some(false));
        assert_eq!(digest(&rows(&[(2, 1.0), (3, 1.0)]), &operation(false, &[])).in_order, None);
    }
}
