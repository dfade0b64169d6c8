//! Tables in fjall's words: which columns make the key, which the value.

use fjall::config::{BlockSizePolicy, CompressionPolicy};
use fjall::{CompressionType, KeyspaceCreateOptions};
use sensorbench_dataset::encoding::{EncodingError, KeyPart, append_key, append_record, read_key, read_record};
use sensorbench_driver::{KeyedSchema, KeyedTable, Parameter, SchemaError, ValueRef};
use serde::Deserialize;

/// Columns that a table may have, so that a row's values fit on the stack while it is read.
pub const MAX_COLUMNS: usize = 16;

/// `[create.table.NAME]` of a schema file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Columns of the key, the most significant first.
    pub key: Vec<Parameter>,
    /// Columns of the value.
    #[serde(default)]
    pub value: Vec<Parameter>,
    /// Compression of data blocks; fjall's default (LZ4 but for the newest levels) if not given.
    compression: Option<Compression>,
    /// Size of data blocks; fjall's default (4 KiB) if not given.
    block_kib: Option<u32>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Compression {
    None,
    Lz4,
}

/// A schema whose tables are known.
pub type FjallSchema = KeyedSchema<Table>;

impl KeyedTable for Table {
    fn check(&self, name: &str) -> Result<(), SchemaError> {
        let error = |message: String| Err(SchemaError::at(format!("create.table.{name}.key"), message));
        match self.columns().count() {
            _ if self.key.is_empty() => error("expected at least one column in the key".to_owned()),
            columns if columns > MAX_COLUMNS => {
                error(format!("a table of fjall has at most {MAX_COLUMNS} columns; there are {columns}"))
            }
            _ => Ok(()),
        }
    }

    fn row_columns(&self) -> Vec<Parameter> {
        self.columns().cloned().collect()
    }
}

impl Table {
    pub fn columns(&self) -> impl Iterator<Item = &Parameter> {
        self.key.iter().chain(&self.value)
    }

    /// The place of a column among key and value columns.
    pub fn place(&self, column: &str) -> Option<usize> {
        self.columns().position(|candidate| candidate.name == column)
    }

    pub fn options(&self) -> KeyspaceCreateOptions {
        let mut options = KeyspaceCreateOptions::default();
        match self.compression {
            Some(Compression::None) => options = options.data_block_compression_policy(CompressionPolicy::disabled()),
            Some(Compression::Lz4) => {
                options = options.data_block_compression_policy(CompressionPolicy::all(CompressionType::Lz4))
            }
            None => {}
        }
        if let Some(block_kib) = self.block_kib {
            options = options.data_block_size_policy(BlockSizePolicy::all(block_kib * 1024));
        }
        options
    }

    pub fn append_key<'v>(&self, key: &mut Vec<u8>, value: impl Fn(usize) -> ValueRef<'v>) -> Result<(), EncodingError> {
        self.key.iter().enumerate().try_for_each(|(place, column)| append_key(key, column.value_type, value(place)))
    }

    pub fn append_record<'v>(&self, record: &mut Vec<u8>, value: impl Fn(usize) -> ValueRef<'v>) -> Result<(), EncodingError> {
        let first = self.key.len();
        self.value
            .iter()
            .enumerate()
            .try_for_each(|(place, column)| append_record(record, column.value_type, value(first + place)))
    }

    /// Reads the columns of a row from its key, without the first `known` columns, and its value.
    #[inline]
    pub fn read<'a>(
        &self,
        known: usize,
        mut key: &'a [u8],
        mut record: &'a [u8],
        row: &mut [KeyPart<'a>; MAX_COLUMNS],
    ) -> Result<(), EncodingError> {
        for (place, column) in self.key.iter().enumerate().skip(known) {
            row[place] = read_key(&mut key, column.value_type)?;
        }
        for (place, column) in self.value.iter().enumerate() {
            row[self.key.len() + place] = KeyPart::Borrowed(read_record(&mut record, column.value_type)?);
        }
        Ok(())
    }
}
