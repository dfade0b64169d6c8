//! Filters that region servers apply, in the bytes of HBase's own messages (protocol buffers, `Filter.proto` and `Comparator.proto` of
//! hbase-protocol-shaded): values stand there as they are, so that nothing is spliced into a text.

const PACKAGE: &str = "org.apache.hadoop.hbase.filter.";
const LENGTH_DELIMITED: u64 = 2;
const MUST_PASS_ALL: u64 = 1;

/// How a cell's bytes are compared with a parameter's, by the numbers of `HBase.proto`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Comparison {
    Less = 0,
    GreaterOrEqual = 4,
    Greater = 5,
}

/// A filter as a scan or a get takes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter(pub Vec<u8>);

impl Filter {
    fn of(name: &str, parameters: &[u8]) -> Self {
        let mut message = Vec::new();
        append_bytes(&mut message, 1, format!("{PACKAGE}{name}").as_bytes());
        append_bytes(&mut message, 2, parameters);
        Self(message)
    }

    /// What passes all of these.
    pub fn all(filters: Vec<Filter>) -> Self {
        let mut parameters = Vec::new();
        append_number(&mut parameters, 1, MUST_PASS_ALL);
        filters.iter().for_each(|filter| append_bytes(&mut parameters, 2, &filter.0));
        Self::of("FilterList", &parameters)
    }

    /// Cells without their values.
    pub fn key_only() -> Self {
        let mut parameters = Vec::new();
        append_number(&mut parameters, 1, 0);
        Self::of("KeyOnlyFilter", &parameters)
    }

    /// The first cell of each row.
    pub fn first_key_only() -> Self {
        Self::of("FirstKeyOnlyFilter", &[])
    }

    /// Cells whose qualifier lies in `from`..`to` (`to` excluded).
    pub fn qualifiers(from: &[u8], to: &[u8]) -> Self {
        let mut parameters = Vec::new();
        append_bytes(&mut parameters, 1, from);
        append_number(&mut parameters, 2, 1);
        append_bytes(&mut parameters, 3, to);
        append_number(&mut parameters, 4, 0);
        Self::of("ColumnRangeFilter", &parameters)
    }

    /// Rows that have a column whose bytes compare so with `value`.
    pub fn column(family: &[u8], qualifier: &[u8], comparison: Comparison, value: &[u8]) -> Self {
        let mut comparable = Vec::new();
        append_bytes(&mut comparable, 1, value);
        let mut serialized = Vec::new();
        append_bytes(&mut serialized, 1, &comparable);
        let mut comparator = Vec::new();
        append_bytes(&mut comparator, 1, format!("{PACKAGE}BinaryComparator").as_bytes());
        append_bytes(&mut comparator, 2, &serialized);
        let mut parameters = Vec::new();
        append_bytes(&mut parameters, 1, family);
        append_bytes(&mut parameters, 2, qualifier);
        append_number(&mut parameters, 3, comparison as u64);
        append_bytes(&mut parameters, 4, &comparator);
        append_number(&mut parameters, 5, 1);
        append_number(&mut parameters, 6, 1);
        Self::of("SingleColumnValueFilter", &parameters)
    }
}

fn append_number(message: &mut Vec<u8>, field: u64, value: u64) {
    append_varint(message, field << 3);
    append_varint(message, value);
}

fn append_bytes(message: &mut Vec<u8>, field: u64, value: &[u8]) {
    append_varint(message, field << 3 | LENGTH_DELIMITED);
    append_varint(message, value.len() as u64);
    message.extend(value);
}

fn append_varint(message: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        message.push(value as u8 | 0x80);
        value >>= 7;
    }
    message.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_messages_of_protocol_buffers() {
        let name = b"org.apache.hadoop.hbase.filter.KeyOnlyFilter";
        let expected = [&[0x0a, name.len() as u8][..], name, &[0x12, 2, 0x08, 0]].concat();
        assert_eq!(Filter::key_only().0, expected);
        let mut long = Vec::new();
        append_bytes(&mut long, 1, &[7; 300]);
        assert_eq!(long[..4], [0x0a, 0xac, 0x02, 7], "lengths beyond 127 take several bytes");
    }
}
