//! Types of ClickHouse, and values in the two binary forms: RowBinary, in which rows are written, and the columns of Native, in which
//! answers come.

use std::fmt;

use sensorbench_driver::{ConversionError, Type, ValueRef};

/// What a column holds. Its name is shown in messages as the server has it.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnType {
    kind: Kind,
    nullable: bool,
    /// Whether values stand in a dictionary, in answers that do not leave it out.
    has_dictionary: bool,
    name: String,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Boolean,
    /// A whole number of this many bytes.
    Signed(usize),
    Unsigned(usize),
    Float32,
    Float64,
    Text,
    /// Text of this many bytes, filled with zeros.
    Fixed(usize),
    /// Seconds since 1970, without a sign.
    Seconds,
    /// Ticks since 1970, this many of which are a µs or, where negative, have this many µs.
    Ticks(i64),
    Days,
    /// What a bare NULL has.
    Nothing,
}

impl ColumnType {
    /// The type of this name; None if this driver cannot read or write it.
    pub fn parse(name: &str) -> Option<Self> {
        let mut inner = name;
        let (mut nullable, mut has_dictionary) = (false, false);
        while let Some((wrapper, wrapped)) = inner.split_once('(') {
            match wrapper {
                "Nullable" => nullable = true,
                "LowCardinality" => has_dictionary = true,
                "SimpleAggregateFunction" => {
                    // Values of it are those of its type, which follows the function's name.
                    inner = wrapped.split_once(", ")?.1.strip_suffix(')')?;
                    continue;
                }
                _ => break,
            }
            inner = wrapped.strip_suffix(')')?;
        }
        Some(Self { kind: kind_of(inner)?, nullable, has_dictionary, name: name.to_owned() })
    }

    /// Appends a value in RowBinary.
    #[inline]
    pub fn append(&self, out: &mut Vec<u8>, value: ValueRef) -> Result<(), ConversionError> {
        if self.nullable {
            out.push(u8::from(value == ValueRef::Null));
            if value == ValueRef::Null {
                return Ok(());
            }
        } else if value == ValueRef::Null {
            return Err(ConversionError(format!("null in a column of type {}; declare it as Nullable({0})", self.name)));
        }
        match (self.kind, value) {
            (Kind::Boolean, ValueRef::Boolean(value)) => out.push(u8::from(value)),
            (Kind::Signed(_) | Kind::Unsigned(_), ValueRef::Boolean(value)) => self.append_whole(out, i64::from(value))?,
            (Kind::Signed(_) | Kind::Unsigned(_), ValueRef::Integer(value)) => self.append_whole(out, value)?,
            (Kind::Float64, ValueRef::Double(value)) => out.extend_from_slice(&value.to_le_bytes()),
            (Kind::Signed(8), ValueRef::Timestamp(us)) => out.extend_from_slice(&us.to_le_bytes()),
            (Kind::Seconds, ValueRef::Timestamp(us)) => {
                let seconds = if us % 1_000_000 == 0 { u32::try_from(us / 1_000_000).ok() } else { None };
                let seconds = seconds.ok_or_else(|| self.cannot_hold(value))?;
                out.extend_from_slice(&seconds.to_le_bytes());
            }
            (Kind::Ticks(of_us), ValueRef::Timestamp(us)) => {
                let ticks = if of_us > 0 {
                    us.checked_mul(of_us)
                } else if us % -of_us == 0 {
                    Some(us / -of_us)
                } else {
                    None
                };
                out.extend_from_slice(&ticks.ok_or_else(|| self.cannot_hold(value))?.to_le_bytes());
            }
            (Kind::Text, ValueRef::Text(text)) => append_text(out, text.as_bytes()),
            (Kind::Text, ValueRef::Bytes(bytes)) => append_text(out, bytes),
            (Kind::Fixed(length), ValueRef::Text(text)) => self.append_fixed(out, length, text.as_bytes(), value)?,
            (Kind::Fixed(length), ValueRef::Bytes(bytes)) => self.append_fixed(out, length, bytes, value)?,
            _ => return Err(self.cannot_hold(value)),
        }
        Ok(())
    }

    fn append_whole(&self, out: &mut Vec<u8>, value: i64) -> Result<(), ConversionError> {
        let (bytes, fits) = match self.kind {
            Kind::Signed(bytes) => (bytes, bytes == 8 || (value >> (8 * bytes - 1)) == value >> 63),
            Kind::Unsigned(bytes) => (bytes, value >= 0 && (bytes == 8 || value >> (8 * bytes) == 0)),
            _ => return Err(self.cannot_hold(ValueRef::Integer(value))),
        };
        if !fits {
            return Err(self.cannot_hold(ValueRef::Integer(value)));
        }
        out.extend_from_slice(&value.to_le_bytes()[..bytes]);
        Ok(())
    }

    /// What is shorter would come back with zeros.
    fn append_fixed(&self, out: &mut Vec<u8>, length: usize, bytes: &[u8], value: ValueRef) -> Result<(), ConversionError> {
        if bytes.len() != length {
            return Err(self.cannot_hold(value));
        }
        out.extend_from_slice(bytes);
        Ok(())
    }

    fn cannot_hold(&self, value: ValueRef) -> ConversionError {
        ConversionError(format!("{value} does not fit into {}", self.name))
    }

    /// Why values of this type are not read as another one; None if they are.
    pub fn why_not(&self, value_type: Type) -> Option<String> {
        let fits = match value_type {
            Type::Boolean => matches!(self.kind, Kind::Boolean | Kind::Unsigned(1) | Kind::Signed(1)),
            Type::Integer => matches!(self.kind, Kind::Signed(_) | Kind::Unsigned(_)),
            Type::Double => self.kind == Kind::Float64,
            Type::Timestamp => matches!(self.kind, Kind::Signed(8) | Kind::Seconds | Kind::Ticks(_) | Kind::Days),
            Type::Text | Type::Bytes => matches!(self.kind, Kind::Text | Kind::Fixed(_)),
        };
        if fits || self.kind == Kind::Nothing {
            return None;
        }
        Some(format!("expected {}, but the server returns {self}", value_type.name()))
    }
}

impl fmt::Display for ColumnType {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(&self.name)?;
        if self.kind == Kind::Float32 { formatter.write_str(", which rounds; use toFloat64 and store Float64") } else { Ok(()) }
    }
}

fn kind_of(name: &str) -> Option<Kind> {
    let arguments = |prefix: &str| name.strip_prefix(prefix)?.strip_prefix('(')?.strip_suffix(')');
    if let Some(length) = arguments("FixedString") {
        return length.parse().ok().map(Kind::Fixed);
    }
    if let Some(inner) = arguments("DateTime64") {
        let digits: u32 = inner.split(',').next()?.trim().parse().ok()?;
        return match digits {
            0..=5 => Some(Kind::Ticks(-10_i64.pow(6 - digits))),
            6..=9 => Some(Kind::Ticks(10_i64.pow(digits - 6))),
            _ => None,
        };
    }
    if arguments("DateTime").is_some() {
        return Some(Kind::Seconds);
    }
    Some(match name {
        "Bool" => Kind::Boolean,
        "Int8" => Kind::Signed(1),
        "Int16" => Kind::Signed(2),
        "Int32" => Kind::Signed(4),
        "Int64" => Kind::Signed(8),
        "UInt8" => Kind::Unsigned(1),
        "UInt16" => Kind::Unsigned(2),
        "UInt32" => Kind::Unsigned(4),
        "UInt64" => Kind::Unsigned(8),
        "Float32" => Kind::Float32,
        "Float64" => Kind::Float64,
        "String" => Kind::Text,
        "DateTime" => Kind::Seconds,
        "Date" => Kind::Days,
        "Nothing" => Kind::Nothing,
        _ => return None,
    })
}

fn append_text(out: &mut Vec<u8>, bytes: &[u8]) {
    append_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn append_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Bytes that are read from their start. What is not there yet is None.
#[derive(Clone, Copy)]
pub struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// How many bytes are left.
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    pub fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    pub fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        Some(number)
    }

    /// A number of eight bytes.
    fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().expect("eight bytes")))
    }

    pub fn text(&mut self) -> Option<&'a [u8]> {
        let length = self.varint()?;
        self.take(usize::try_from(length).ok()?)
    }
}

/// A column of a block of Native.
pub struct Values<'a> {
    column: ColumnType,
    nulls: Option<&'a [u8]>,
    data: Data<'a>,
}

enum Data<'a> {
    /// Values of this many bytes each.
    Fixed(usize, &'a [u8]),
    Texts(Vec<&'a [u8]>),
    /// The values that there are, and for each row which of them it has. Where rows may be null, the first one stands for that.
    Dictionary(Box<Values<'a>>, Vec<usize>),
}

/// How columns with dictionaries begin.
const DICTIONARY_VERSION: u64 = 1;
/// What a part of such a column says of itself: the width of its places, and that its own dictionary follows.
const PLACE_WIDTH: u64 = 0xff;
const HAS_OWN_KEYS: u64 = 0x200;
const HAS_SHARED_KEYS: u64 = 0x100;

impl<'a> Values<'a> {
    /// The next this many values; None if not all of them are there yet.
    pub fn take(column: ColumnType, rows: usize, cursor: &mut Cursor<'a>) -> Option<Self> {
        if column.has_dictionary {
            return Self::take_dictionary(column, rows, cursor);
        }
        let nulls = if column.nullable { Some(cursor.take(rows)?) } else { None };
        let width = match column.kind {
            Kind::Text => {
                let texts = (0..rows).map(|_| cursor.text()).collect::<Option<_>>()?;
                return Some(Self { column, nulls, data: Data::Texts(texts) });
            }
            Kind::Boolean | Kind::Nothing => 1,
            Kind::Signed(bytes) | Kind::Unsigned(bytes) | Kind::Fixed(bytes) => bytes,
            Kind::Days => 2,
            Kind::Float32 | Kind::Seconds => 4,
            Kind::Float64 | Kind::Ticks(_) => 8,
        };
        let data = Data::Fixed(width, cursor.take(rows.checked_mul(width)?)?);
        Some(Self { column, nulls, data })
    }

    /// The same where values stand in a dictionary. Blocks of Native have one each.
    fn take_dictionary(column: ColumnType, rows: usize, cursor: &mut Cursor<'a>) -> Option<Self> {
        let keys_of = ColumnType { nullable: false, has_dictionary: false, ..column.clone() };
        if rows == 0 {
            let keys = Self::take(keys_of, 0, cursor)?;
            return Some(Self { column, nulls: None, data: Data::Dictionary(Box::new(keys), Vec::new()) });
        }
        let (version, form) = (cursor.number()?, cursor.number()?);
        let is_known = version == DICTIONARY_VERSION && form & HAS_OWN_KEYS != 0 && form & HAS_SHARED_KEYS == 0;
        let count = usize::try_from(cursor.number()?).ok().filter(|_| is_known)?;
        let keys = Self::take(keys_of, count, cursor)?;
        cursor.number().filter(|number| *number == rows as u64)?;
        let width = 1usize.checked_shl((form & PLACE_WIDTH) as u32).filter(|width| *width <= 8)?;
        let place = |bytes: &[u8]| bytes.iter().rev().fold(0, |place, byte| place << 8 | usize::from(*byte));
        let places: Vec<usize> = cursor.take(rows.checked_mul(width)?)?.chunks_exact(width).map(place).collect();
        places.iter().all(|place| *place < count).then_some(())?;
        Some(Self { column, nulls: None, data: Data::Dictionary(Box::new(keys), places) })
    }

    /// The value of a row, as one of a type for which [`ColumnType::why_not`] found no reason.
    #[inline]
    pub fn value(&self, row: usize, value_type: Type) -> Result<ValueRef<'a>, ConversionError> {
        if self.nulls.is_some_and(|nulls| nulls[row] != 0) {
            return Ok(ValueRef::Null);
        }
        let bytes = match &self.data {
            Data::Fixed(width, bytes) => &bytes[row * width..(row + 1) * width],
            Data::Texts(texts) => texts[row],
            Data::Dictionary(_, places) if self.column.nullable && places[row] == 0 => return Ok(ValueRef::Null),
            Data::Dictionary(keys, places) => return keys.value(places[row], value_type),
        };
        let other = || ConversionError(format!("a value of {} is no {}", self.column.name, value_type.name()));
        Ok(match value_type {
            Type::Boolean => ValueRef::Boolean(bytes[0] != 0),
            Type::Integer => ValueRef::Integer(self.whole(bytes).ok_or_else(other)?),
            Type::Double => ValueRef::Double(f64::from_le_bytes(bytes.try_into().map_err(|_| other())?)),
            Type::Timestamp => ValueRef::Timestamp(self.micros(bytes).ok_or_else(other)?),
            Type::Text => ValueRef::Text(std::str::from_utf8(bytes).map_err(|_| other())?),
            Type::Bytes => ValueRef::Bytes(bytes),
        })
    }

    fn whole(&self, bytes: &[u8]) -> Option<i64> {
        let is_negative = matches!(self.column.kind, Kind::Signed(_)) && bytes.last()? & 0x80 != 0;
        let mut wide = if is_negative { [0xff; 8] } else { [0; 8] };
        wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
        let number = i64::from_le_bytes(wide);
        (is_negative || number >= 0).then_some(number)
    }

    fn micros(&self, bytes: &[u8]) -> Option<i64> {
        match self.column.kind {
            Kind::Seconds => Some(i64::from(u32::from_le_bytes(bytes.try_into().ok()?)) * 1_000_000),
            Kind::Days => Some(i64::from(u16::from_le_bytes(bytes.try_into().ok()?)) * 86_400_000_000),
            Kind::Ticks(of_us) => {
                let ticks = i64::from_le_bytes(bytes.try_into().ok()?);
                if of_us < 0 { ticks.checked_mul(-of_us) } else { (ticks % of_us == 0).then(|| ticks / of_us) }
            }
            _ => self.whole(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use sensorbench_driver::Value;

    use super::*;

    fn written(name: &str, value: ValueRef) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        ColumnType::parse(name).expect(name).append(&mut out, value).map_err(|error| error.to_string())?;
        Ok(out)
    }

    /// One value that was written and is read again: one row has the same bytes in both forms.
    fn read_again(name: &str, value: ValueRef, value_type: Type) -> Value {
        let bytes = written(name, value).unwrap();
        let column = ColumnType::parse(name).unwrap();
        assert_eq!(column.why_not(value_type), None);
        // Rows have no dictionary.
        let column = ColumnType { has_dictionary: false, ..column };
        // A null has no further bytes in RowBinary, and some in Native.
        let padded = if value == ValueRef::Null { [bytes.as_slice(), &[0; 8]].concat() } else { bytes };
        Values::take(column, 1, &mut Cursor::new(&padded)).expect("all of it").value(0, value_type).unwrap().to_value()
    }

    #[test]
    fn what_is_written_is_read_again() {
        for (name, value) in [
            ("Int64", ValueRef::Integer(i64::MIN)),
            ("Int8", ValueRef::Integer(-128)),
            ("Int16", ValueRef::Integer(-2)),
            ("UInt8", ValueRef::Integer(255)),
            ("UInt64", ValueRef::Integer(i64::MAX)),
            ("Nullable(Int32)", ValueRef::Integer(-7)),
            ("Nullable(Int32)", ValueRef::Null),
            ("UInt8", ValueRef::Boolean(true)),
            ("Bool", ValueRef::Boolean(false)),
            ("Float64", ValueRef::Double(0.1 + 0.2)),
            ("Int64", ValueRef::Timestamp(-1)),
            ("DateTime", ValueRef::Timestamp(4_294_967_295_000_000)),
            ("DateTime('UTC')", ValueRef::Timestamp(0)),
            ("DateTime64(6, 'UTC')", ValueRef::Timestamp(-1)),
            ("DateTime64(3)", ValueRef::Timestamp(-1000)),
            ("DateTime64(9)", ValueRef::Timestamp(7)),
            ("LowCardinality(Nullable(String))", ValueRef::Text("é")),
            ("String", ValueRef::Bytes(b"\0\xff")),
            ("FixedString(2)", ValueRef::Text("ab")),
            ("SimpleAggregateFunction(max, Float64)", ValueRef::Double(0.5)),
            ("Nullable(SimpleAggregateFunction(max, DateTime64(6)))", ValueRef::Timestamp(1)),
        ] {
            let value_type = match value {
                ValueRef::Boolean(_) => Type::Boolean,
                ValueRef::Integer(_) | ValueRef::Null => Type::Integer,
                ValueRef::Double(_) => Type::Double,
                ValueRef::Timestamp(_) => Type::Timestamp,
                ValueRef::Text(_) => Type::Text,
                ValueRef::Bytes(_) => Type::Bytes,
            };
            assert_eq!(read_again(name, value, value_type), value.to_value(), "{name}");
        }
    }

    #[test]
    fn values_are_found_in_their_dictionary() {
        let number = |number: u64| number.to_le_bytes();
        let head = [number(1), number(0x600)].concat();
        let read = |name: &str, bytes: &[u8], rows: usize| {
            let column = ColumnType::parse(name).unwrap();
            let values = Values::take(column, rows, &mut Cursor::new(bytes))?;
            Some((0..rows).map(|row| values.value(row, Type::Text).unwrap().to_value()).collect::<Vec<_>>())
        };
        let text = |text: &str| Value::Text(text.into());
        let of_text = [head.clone(), number(3).to_vec(), b"\0\x01a\x01b".to_vec(), number(4).to_vec(), vec![1, 2, 1, 0]].concat();
        assert_eq!(read("LowCardinality(String)", &of_text, 4).unwrap(), [text("a"), text("b"), text("a"), text("")]);
        // Not whole yet.
        (1..of_text.len()).for_each(|end| assert!(read("LowCardinality(String)", &of_text[..end], 4).is_none(), "{end}"));
        // The first key stands for null; places of two bytes.
        let nullable =
            [number(1), number(0x601), number(3)].concat().into_iter().chain(*b"\0\0\x01b").chain(number(2)).chain([0, 0, 2, 0]);
        let nullable: Vec<u8> = nullable.collect();
        assert_eq!(read("LowCardinality(Nullable(String))", &nullable, 2).unwrap(), [Value::Null, text("b")]);
        assert!(read("LowCardinality(String)", &[], 0).unwrap().is_empty());
    }

    #[test]
    fn what_a_type_would_change_is_refused() {
        for (name, value) in [
            ("Int8", ValueRef::Integer(128)),
            ("UInt8", ValueRef::Integer(-1)),
            ("UInt16", ValueRef::Integer(65_536)),
            ("Int32", ValueRef::Integer(1 << 31)),
            ("Float32", ValueRef::Double(0.5)),
            ("DateTime", ValueRef::Timestamp(1)),
            ("DateTime", ValueRef::Timestamp(-1_000_000)),
            ("DateTime64(3)", ValueRef::Timestamp(1)),
            ("DateTime64(9)", ValueRef::Timestamp(i64::MAX)),
            ("FixedString(3)", ValueRef::Text("ab")),
            ("String", ValueRef::Integer(1)),
        ] {
            assert!(written(name, value).unwrap_err().contains("does not fit into"), "{name}");
        }
        assert!(written("String", ValueRef::Null).unwrap_err().contains("declare it as Nullable(String)"));
        for name in ["Array(Int8)", "Decimal(9, 2)", "Enum8('a' = 1)", "Nullable(Int8"] {
            assert_eq!(ColumnType::parse(name), None, "{name}");
        }
        let too_much = u64::MAX.to_le_bytes();
        let values = Values::take(ColumnType::parse("UInt64").unwrap(), 1, &mut Cursor::new(&too_much)).unwrap();
        assert!(values.value(0, Type::Integer).is_err());
    }
}
