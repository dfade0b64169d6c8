//! Tables in HBase's words: which columns make the row key, which the cells, and what HBase gets of them.

use sensorbench_dataset::encoding::append_key;
use sensorbench_dataset::{Every, Type, Value};
use sensorbench_driver::{KeyedSchema, KeyedTable, Parameter, SchemaError, ValueRef};
use serde::Deserialize;
use serde_json::Value as Json;

use crate::bindings::{
    TBloomFilterType, TColumnFamilyDescriptor, TCompressionAlgorithm, TDataBlockEncoding, TTableDescriptor, TTableName,
};

/// The column family of every table: its name is part of every cell, so that a short one is usual.
pub const FAMILY: &[u8] = b"d";

/// `[create.table.NAME]` of a schema file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Columns of the row key, the most significant first.
    pub key: Vec<Parameter>,
    /// Columns of the value: a cell each, whose qualifier is the column's name.
    #[serde(default)]
    pub columns: Vec<Parameter>,
    /// The time within a period is each cell's qualifier: a row has a cell for each time.
    pub qualifier: Option<Offset>,
    /// The time within a period is each cell's version.
    pub version: Option<Offset>,
    compression: Option<Compression>,
    data_block_encoding: Option<DataBlockEncoding>,
    bloom: Option<Bloom>,
    block_kib: Option<i32>,
    /// Where regions begin, but for the first: values of the first columns of the key.
    #[serde(default)]
    splits: Vec<Vec<Json>>,
}

/// A time that is kept as this many units since the beginning of a period, which is a column of the row key.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Offset {
    /// The column of the time.
    pub name: String,
    /// The column of the row key that has the beginning of the period.
    pub since: String,
    /// Length of the period.
    pub period: Period,
    /// What is counted.
    pub unit: Unit,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Period {
    Hour,
    Day,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Compression {
    None,
    Gz,
    Snappy,
    Lz4,
    Zstd,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum DataBlockEncoding {
    None,
    Prefix,
    Diff,
    FastDiff,
    RowIndexV1,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Bloom {
    None,
    Row,
    Rowcol,
}

/// A schema whose tables are known.
pub type HbaseSchema = KeyedSchema<Table>;

impl Period {
    fn every(self) -> Every {
        Every::Microseconds(match self {
            Period::Hour => 3_600_000_000,
            Period::Day => 86_400_000_000,
        })
    }
}

impl Unit {
    fn length_us(self) -> i64 {
        match self {
            Unit::Microsecond => 1,
            Unit::Millisecond => 1_000,
            Unit::Second => 1_000_000,
            Unit::Minute => 60_000_000,
        }
    }
}

impl Offset {
    /// The beginning of the period that a time lies in.
    pub fn floor(&self, time_us: i64) -> i64 {
        self.period.every().floor(time_us)
    }

    /// The beginnings of the periods that `from_us`..`to_us` (`to_us` excluded) meets.
    pub fn periods(&self, from_us: i64, to_us: i64) -> impl Iterator<Item = i64> {
        self.period.every().starts(from_us, to_us)
    }

    /// The first unit of a period that is not before a time.
    pub fn first_unit(&self, start_us: i64, time_us: i64) -> i64 {
        let (length, since) = (self.unit.length_us(), time_us.saturating_sub(start_us));
        since.max(0).div_euclid(length) + i64::from(since.max(0).rem_euclid(length) != 0)
    }

    /// The unit that a time is, or None for one between two units.
    pub fn unit(&self, start_us: i64, time_us: i64) -> Option<i64> {
        let since = time_us - start_us;
        (since % self.unit.length_us() == 0).then(|| since / self.unit.length_us())
    }

    pub fn time_us(&self, start_us: i64, unit: i64) -> i64 {
        start_us + unit * self.unit.length_us()
    }

    /// Units of a whole period.
    pub fn units(&self) -> i64 {
        let Every::Microseconds(length) = self.period.every() else { unreachable!("periods are not months") };
        length / self.unit.length_us()
    }

    /// A time that lies on no unit: cells of two such times would be one.
    pub fn refused(&self, time_us: i64) -> String {
        let unit = format!("{:?}", self.unit).to_lowercase();
        format!("the {} {time_us} (in microseconds since 1970) is not a whole {unit}; choose a smaller unit", self.name)
    }
}

impl KeyedTable for Table {
    fn check(&self, name: &str) -> Result<(), SchemaError> {
        let path = format!("create.table.{name}");
        let is_word = |name: &str| {
            name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && name.starts_with(|c: char| c.is_ascii_alphabetic())
        };
        if !is_word(name) {
            return Err(SchemaError::at(path, format!("the name {name:?} is not a word of letters, digits and underscores")));
        }
        if self.key.is_empty() {
            return Err(SchemaError::at(format!("{path}.key"), "expected at least one column in the key"));
        }
        if let Some(double) = self.row_columns().iter().enumerate().find_map(|(place, column)| {
            self.row_columns()[..place].iter().any(|other| other.name == column.name).then(|| column.name.clone())
        }) {
            return Err(SchemaError::at(path, format!("the column {double} is there twice")));
        }
        self.check_offset(&path)?;
        self.split_keys(&path).map(drop)
    }

    /// All columns of a row: those of the key that are given, the time if it is kept apart, those of the value.
    fn row_columns(&self) -> Vec<Parameter> {
        let time = self.offset().map(|offset| Parameter { name: offset.name.clone(), value_type: Type::Timestamp });
        self.given_key().cloned().chain(time).chain(self.columns.iter().cloned()).collect()
    }
}

impl Table {
    /// How the time is kept apart, where it is.
    pub fn offset(&self) -> Option<&Offset> {
        self.qualifier.as_ref().or(self.version.as_ref())
    }

    /// Columns of the row key that rows bring: without the beginning of a period, which follows from the time.
    pub fn given_key(&self) -> impl Iterator<Item = &Parameter> {
        let since = self.offset().map(|offset| offset.since.as_str());
        self.key.iter().filter(move |column| Some(column.name.as_str()) != since)
    }

    /// Appends the row key; `value` knows the given columns by their place, `start_us` is the beginning of the period.
    pub fn append_key<'v>(
        &self,
        key: &mut Vec<u8>,
        start_us: Option<i64>,
        value: impl Fn(usize) -> ValueRef<'v>,
    ) -> Result<(), String> {
        let since = self.offset().map(|offset| offset.since.as_str());
        let mut place = 0;
        for column in &self.key {
            let part = if Some(column.name.as_str()) == since {
                start_us.map_or(ValueRef::Null, ValueRef::Timestamp)
            } else {
                place += 1;
                value(place - 1)
            };
            append_key(key, column.value_type, part).map_err(|error| format!("column {} of the key: {error}", column.name))?;
        }
        Ok(())
    }

    fn check_offset(&self, path: &str) -> Result<(), SchemaError> {
        let Some(offset) = self.offset() else { return Ok(()) };
        if self.qualifier.is_some() && self.version.is_some() {
            return Err(SchemaError::at(format!("{path}.version"), "expected the time either as qualifier or as version"));
        }
        let place = format!("{path}.{}", if self.qualifier.is_some() { "qualifier" } else { "version" });
        if !self.key.iter().any(|column| column.name == offset.since && column.value_type == Type::Timestamp) {
            return Err(SchemaError::at(
                format!("{place}.since"),
                format!("the key has no column {} of type timestamp", offset.since),
            ));
        }
        if self.columns.len() != 1 {
            return Err(SchemaError::at(
                format!("{path}.columns"),
                "expected one column, whose values stand beside one another by their times",
            ));
        }
        Ok(())
    }

    /// Where regions begin, as row keys in their order.
    pub fn split_keys(&self, path: &str) -> Result<Vec<Vec<u8>>, SchemaError> {
        let mut keys = Vec::new();
        for (number, values) in self.splits.iter().enumerate() {
            let error = |message: String| SchemaError::at(format!("{path}.splits[{number}]"), message);
            if values.is_empty() || values.len() > self.key.len() {
                return Err(error(format!("expected values for the first of the key's {} columns", self.key.len())));
            }
            let mut key = Vec::new();
            for (column, value) in self.key.iter().zip(values) {
                let value = split_value(column, value)
                    .ok_or_else(|| error(format!("column {} is a {}, not {value}", column.name, column.value_type.name())))?;
                append_key(&mut key, column.value_type, value.as_ref()).map_err(|problem| error(problem.to_string()))?;
            }
            keys.push(key);
        }
        keys.sort_unstable();
        keys.dedup();
        Ok(keys)
    }

    /// What HBase gets about the table.
    pub fn descriptor(&self, namespace: &str, name: &str) -> TTableDescriptor {
        let family = TColumnFamilyDescriptor {
            name: FAMILY.to_vec(),
            block_size: self.block_kib.map(|kib| kib * 1024),
            bloomn_filter_type: self.bloom.map(|bloom| match bloom {
                Bloom::None => TBloomFilterType::NONE,
                Bloom::Row => TBloomFilterType::ROW,
                Bloom::Rowcol => TBloomFilterType::ROWCOL,
            }),
            compression_type: self.compression.map(|compression| match compression {
                Compression::None => TCompressionAlgorithm::NONE,
                Compression::Gz => TCompressionAlgorithm::GZ,
                Compression::Snappy => TCompressionAlgorithm::SNAPPY,
                Compression::Lz4 => TCompressionAlgorithm::LZ4,
                Compression::Zstd => TCompressionAlgorithm::ZSTD,
            }),
            data_block_encoding: self.data_block_encoding.map(|encoding| match encoding {
                DataBlockEncoding::None => TDataBlockEncoding::NONE,
                DataBlockEncoding::Prefix => TDataBlockEncoding::PREFIX,
                DataBlockEncoding::Diff => TDataBlockEncoding::DIFF,
                DataBlockEncoding::FastDiff => TDataBlockEncoding::FAST_DIFF,
                DataBlockEncoding::RowIndexV1 => TDataBlockEncoding::ROW_INDEX_V1,
            }),
            max_versions: Some(if self.version.is_some() { i32::MAX } else { 1 }),
            ..empty_family()
        };
        let table_name = TTableName { ns: Some(namespace.as_bytes().to_vec()), qualifier: name.as_bytes().to_vec() };
        TTableDescriptor { table_name, columns: Some(vec![family]), attributes: None, durability: None }
    }
}

fn split_value(column: &Parameter, value: &Json) -> Option<Value> {
    Some(match column.value_type {
        Type::Boolean => Value::Boolean(value.as_bool()?),
        Type::Integer => Value::Integer(value.as_i64()?),
        Type::Double => Value::Double(value.as_f64()?),
        Type::Text => Value::Text(value.as_str()?.into()),
        Type::Timestamp => Value::Timestamp(value.as_i64()?),
        Type::Bytes => return None,
    })
}

/// A family of which HBase knows nothing but its defaults.
fn empty_family() -> TColumnFamilyDescriptor {
    TColumnFamilyDescriptor {
        name: Vec::new(),
        attributes: None,
        configuration: None,
        block_size: None,
        bloomn_filter_type: None,
        compression_type: None,
        dfs_replication: None,
        data_block_encoding: None,
        keep_deleted_cells: None,
        max_versions: None,
        min_versions: None,
        scope: None,
        time_to_live: None,
        block_cache_enabled: None,
        cache_blooms_on_write: None,
        cache_data_on_write: None,
        cache_indexes_on_write: None,
        compress_tags: None,
        evict_blocks_on_close: None,
        in_memory: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offset(period: &str, unit: &str) -> Offset {
        serde_json::from_value(serde_json::json!({"name": "time", "since": "start", "period": period, "unit": unit})).unwrap()
    }

    #[test]
    fn times_are_units_of_their_period() {
        let minutes = offset("hour", "minute");
        let hour = 3_600_000_000;
        assert_eq!((minutes.floor(-1), minutes.floor(hour)), (-hour, hour));
        assert_eq!(minutes.unit(hour, hour + 59 * 60_000_000), Some(59));
        assert_eq!(minutes.unit(hour, hour + 1), None, "a time between two minutes is not one of them");
        assert_eq!(minutes.time_us(-hour, 59), -60_000_000);
        assert_eq!((minutes.units(), offset("day", "second").units()), (60, 86_400));
        assert_eq!([hour - 5, hour, hour + 1, hour + 60_000_000].map(|time| minutes.first_unit(hour, time)), [0, 0, 1, 1]);
        assert_eq!(minutes.periods(hour - 1, hour + 1).collect::<Vec<_>>(), [0, hour]);
    }
}
