//! Values in PostgreSQL's binary form.

use bytes::BufMut;
use postgres_types::{Kind, Type as ServerType};
use sensorbench_driver::{ConversionError, Type, ValueRef, fixed, narrowed};

use super::numeric;

/// From 1970-01-01, where canonical times begin, to 2000-01-01, where PostgreSQL's do.
const EPOCH_US: i64 = 946_684_800_000_000;

/// How the values of a column or parameter are written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    Boolean,
    Int2,
    Int4,
    Int8,
    Float8,
    /// With and without time zone: both are microseconds of UTC.
    Timestamp,
    Text,
    Bytes,
    /// Only read, as a computed double.
    Numeric,
}

/// A value that is about to be written.
#[derive(Clone, Copy, Debug)]
pub enum Encoded<'a> {
    Null,
    Boolean(bool),
    Int2(i16),
    Int4(i32),
    Int8(i64),
    Float8(f64),
    Bytes(&'a [u8]),
}

impl Form {
    /// The form in which a type of the server holds exactly the values of a canonical type; None when it does not. `real` is
    /// none for doubles, because it keeps half of their digits.
    pub fn of(canonical: Type, server: &ServerType) -> Option<Self> {
        if let Kind::Domain(base) = server.kind() {
            return Self::of(canonical, base);
        }
        Some(match (canonical, server) {
            (Type::Boolean, &ServerType::BOOL) => Form::Boolean,
            (Type::Integer, &ServerType::INT2) => Form::Int2,
            (Type::Integer, &ServerType::INT4) => Form::Int4,
            (Type::Integer, &ServerType::INT8) => Form::Int8,
            (Type::Double, &ServerType::FLOAT8) => Form::Float8,
            (Type::Timestamp, &ServerType::TIMESTAMP | &ServerType::TIMESTAMPTZ) => Form::Timestamp,
            (Type::Text, &ServerType::TEXT | &ServerType::VARCHAR | &ServerType::NAME) => Form::Text,
            (Type::Bytes, &ServerType::BYTEA) => Form::Bytes,
            _ => return None,
        })
    }

    /// The form of a column of an answer, where computed doubles may come as `numeric`.
    pub fn of_answer(canonical: Type, computed: bool, server: &ServerType) -> Option<Self> {
        let is_number = computed && canonical == Type::Double && *server == ServerType::NUMERIC;
        if is_number { Some(Form::Numeric) } else { Self::of(canonical, server) }
    }

    /// The server's type of this form.
    pub fn server_type(self) -> ServerType {
        match self {
            Form::Boolean => ServerType::BOOL,
            Form::Int2 => ServerType::INT2,
            Form::Int4 => ServerType::INT4,
            Form::Int8 => ServerType::INT8,
            Form::Float8 => ServerType::FLOAT8,
            Form::Timestamp => ServerType::TIMESTAMP,
            Form::Text => ServerType::VARCHAR,
            Form::Bytes => ServerType::BYTEA,
            Form::Numeric => ServerType::NUMERIC,
        }
    }

    /// What a value is on the wire.
    #[inline]
    pub fn encode(self, value: ValueRef) -> Result<Encoded, ConversionError> {
        Ok(match (self, value) {
            (_, ValueRef::Null) => Encoded::Null,
            (Form::Boolean, ValueRef::Boolean(value)) => Encoded::Boolean(value),
            (Form::Int2, ValueRef::Integer(value)) => Encoded::Int2(narrowed(value, "smallint")?),
            (Form::Int4, ValueRef::Integer(value)) => Encoded::Int4(narrowed(value, "integer")?),
            (Form::Int8, ValueRef::Integer(value)) => Encoded::Int8(value),
            (Form::Float8, ValueRef::Double(value)) => Encoded::Float8(value),
            (Form::Timestamp, ValueRef::Timestamp(value)) => Encoded::Int8(server_time(value)?),
            (Form::Text, ValueRef::Text(value)) => Encoded::Bytes(value.as_bytes()),
            (Form::Bytes, ValueRef::Bytes(value)) => Encoded::Bytes(value),
            (_, value) => return Err(ConversionError(format!("the value {value} is not of the column's type"))),
        })
    }

    /// Reads a value that is not null.
    #[inline]
    pub fn read(self, bytes: &[u8]) -> Result<ValueRef<'_>, ConversionError> {
        Ok(match self {
            Form::Boolean => ValueRef::Boolean(fixed::<1>(bytes)? != [0]),
            Form::Int2 => ValueRef::Integer(i16::from_be_bytes(fixed(bytes)?).into()),
            Form::Int4 => ValueRef::Integer(i32::from_be_bytes(fixed(bytes)?).into()),
            Form::Int8 => ValueRef::Integer(i64::from_be_bytes(fixed(bytes)?)),
            Form::Float8 => ValueRef::Double(f64::from_be_bytes(fixed(bytes)?)),
            Form::Timestamp => ValueRef::Timestamp(canonical_time(i64::from_be_bytes(fixed(bytes)?))?),
            Form::Text => ValueRef::Text(std::str::from_utf8(bytes).map_err(|error| ConversionError(error.to_string()))?),
            Form::Bytes => ValueRef::Bytes(bytes),
            Form::Numeric => ValueRef::Double(
                numeric::to_double(bytes)
                    .ok_or_else(|| ConversionError("the server sent bytes that are not a numeric value".to_owned()))?,
            ),
        })
    }
}

/// How a database distinguishes null from other values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Nulls {
    /// Null is a value of its own.
    Apart,
    /// The smallest integer of a type, NaN and the infinities are null; booleans and narrow integers have no null.
    InBand,
}

impl Nulls {
    /// Refuses what the database would turn into null, or null into something else, without a word.
    #[inline]
    pub fn check(self, form: Form, value: ValueRef) -> Result<(), ConversionError> {
        if self == Nulls::Apart {
            return Ok(());
        }
        let (found, expected) = match (form, value) {
            (Form::Boolean | Form::Int2, ValueRef::Null) => ("null", "columns of this type have no null"),
            (Form::Int4, ValueRef::Integer(value)) if value == i64::from(i32::MIN) => {
                ("the smallest integer", "it stands for null; declare the column as long")
            }
            (Form::Int8, ValueRef::Integer(i64::MIN)) => ("the smallest integer", "it stands for null"),
            (Form::Timestamp, ValueRef::Timestamp(time)) if time == i64::MIN + EPOCH_US => {
                ("the earliest time", "it stands for null")
            }
            (Form::Float8, ValueRef::Double(value)) if value.is_nan() => ("NaN", "it stands for null"),
            (Form::Float8, ValueRef::Double(value)) if value.is_infinite() => ("an infinity", "it stands for null"),
            _ => return Ok(()),
        };
        Err(ConversionError(format!("{found} cannot be stored: {expected}")))
    }
}

/// What the values of a database's types cannot be, though its protocol has them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// How null is distinguished from other values.
    pub nulls: Nulls,
    /// The unit of the database's times in a microsecond's place: 1 for microseconds, 1,000 for milliseconds.
    pub time_unit_us: i64,
}

impl Limits {
    /// PostgreSQL's: everything is kept as it was written.
    pub const NONE: Self = Self { nulls: Nulls::Apart, time_unit_us: 1 };

    /// Refuses what the database would change without a word.
    #[inline]
    pub fn check(self, form: Form, value: ValueRef) -> Result<(), ConversionError> {
        self.nulls.check(form, value)?;
        match value {
            ValueRef::Timestamp(time) if time % self.time_unit_us != 0 => Err(ConversionError(format!(
                "the time {time} µs is not a multiple of {} µs, which is all that the server keeps of a time",
                self.time_unit_us
            ))),
            _ => Ok(()),
        }
    }
}

impl Encoded<'_> {
    /// The length that goes before the value in a row of COPY; -1 says null.
    #[inline]
    pub fn length(self) -> i32 {
        match self {
            Encoded::Null => -1,
            Encoded::Boolean(_) => 1,
            Encoded::Int2(_) => 2,
            Encoded::Int4(_) => 4,
            Encoded::Int8(_) | Encoded::Float8(_) => 8,
            Encoded::Bytes(value) => value.len() as i32,
        }
    }

    /// Writes the value without its length; nothing for null.
    #[inline]
    pub fn put(self, out: &mut impl BufMut) {
        match self {
            Encoded::Null => {}
            Encoded::Boolean(value) => out.put_u8(value.into()),
            Encoded::Int2(value) => out.put_i16(value),
            Encoded::Int4(value) => out.put_i32(value),
            Encoded::Int8(value) => out.put_i64(value),
            Encoded::Float8(value) => out.put_f64(value),
            Encoded::Bytes(value) => out.put_slice(value),
        }
    }
}

/// PostgreSQL takes the smallest number for a time that is infinitely early.
#[inline]
fn server_time(canonical: i64) -> Result<i64, ConversionError> {
    let time = canonical.checked_sub(EPOCH_US).filter(|time| *time != i64::MIN);
    time.ok_or_else(|| ConversionError(format!("the time {canonical} µs is too early for PostgreSQL")))
}

#[inline]
fn canonical_time(time: i64) -> Result<i64, ConversionError> {
    let is_finite = time != i64::MIN && time != i64::MAX;
    let canonical = time.checked_add(EPOCH_US).filter(|_| is_finite);
    canonical.ok_or_else(|| ConversionError("the time is infinite, or beyond the year 294,247".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back(form: Form, value: ValueRef) {
        let mut bytes = Vec::new();
        let encoded = form.encode(value).unwrap();
        encoded.put(&mut bytes);
        assert_eq!(bytes.len() as i32, encoded.length());
        assert_eq!(form.read(&bytes), Ok(value));
    }

    #[test]
    fn values_come_back_as_they_were() {
        there_and_back(Form::Boolean, ValueRef::Boolean(true));
        there_and_back(Form::Int2, ValueRef::Integer(-32_768));
        there_and_back(Form::Int4, ValueRef::Integer(i32::MAX.into()));
        there_and_back(Form::Int8, ValueRef::Integer(i64::MIN));
        there_and_back(Form::Float8, ValueRef::Double(f64::MIN_POSITIVE));
        there_and_back(Form::Timestamp, ValueRef::Timestamp(-1));
        there_and_back(Form::Text, ValueRef::Text("日本"));
        there_and_back(Form::Bytes, ValueRef::Bytes(&[0, 255]));
    }

    #[test]
    fn times_count_from_the_year_2000_on_the_wire() {
        let mut bytes = Vec::new();
        Form::Timestamp.encode(ValueRef::Timestamp(EPOCH_US + 5)).unwrap().put(&mut bytes);
        assert_eq!(bytes, 5_i64.to_be_bytes());
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let refused = |form: Form, value| form.encode(value).unwrap_err().to_string();
        assert!(refused(Form::Int2, ValueRef::Integer(32_768)).contains("32768 does not fit into smallint"));
        assert!(refused(Form::Int4, ValueRef::Integer(1 << 31)).contains("declare it as bigint"));
        assert!(refused(Form::Timestamp, ValueRef::Timestamp(i64::MIN + EPOCH_US)).contains("too early"));
        assert!(refused(Form::Timestamp, ValueRef::Timestamp(i64::MIN)).contains("too early"));
        assert!(refused(Form::Int8, ValueRef::Text("x")).contains("not of the column's type"));
        assert!(Form::Timestamp.read(&i64::MAX.to_be_bytes()).is_err());
        assert!(Form::Int8.read(&[0; 4]).is_err());
        assert!(Form::Text.read(&[0xff]).is_err());
    }

    #[test]
    fn what_stands_for_null_is_refused_where_null_is_not_apart() {
        let refused = |form: Form, value| Nulls::InBand.check(form, value).unwrap_err().to_string();
        assert!(refused(Form::Int8, ValueRef::Integer(i64::MIN)).contains("smallest integer cannot be stored"));
        assert!(refused(Form::Int4, ValueRef::Integer(i32::MIN.into())).contains("declare the column as long"));
        assert!(refused(Form::Float8, ValueRef::Double(f64::NAN)).contains("NaN"));
        assert!(refused(Form::Float8, ValueRef::Double(f64::NEG_INFINITY)).contains("infinity"));
        assert!(refused(Form::Boolean, ValueRef::Null).contains("have no null"));
        assert_eq!(Nulls::InBand.check(Form::Int8, ValueRef::Null), Ok(()));
        assert_eq!(Nulls::InBand.check(Form::Int8, ValueRef::Integer(i64::MIN + 1)), Ok(()));
        assert_eq!(Nulls::Apart.check(Form::Int8, ValueRef::Integer(i64::MIN)), Ok(()));
    }

    #[test]
    fn only_exact_types_have_a_form() {
        assert_eq!(Form::of(Type::Double, &ServerType::FLOAT4), None);
        assert_eq!(Form::of(Type::Double, &ServerType::NUMERIC), None);
        assert_eq!(Form::of(Type::Integer, &ServerType::FLOAT8), None);
        assert_eq!(Form::of(Type::Timestamp, &ServerType::TIMESTAMPTZ), Some(Form::Timestamp));
        assert_eq!(Form::of_answer(Type::Double, true, &ServerType::NUMERIC), Some(Form::Numeric));
        assert_eq!(Form::of_answer(Type::Double, false, &ServerType::NUMERIC), None);
        assert_eq!(Form::of_answer(Type::Integer, true, &ServerType::NUMERIC), None);
    }
}
