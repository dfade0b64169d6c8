//! HBase, through its Thrift 2 gateways, one for each region server.
//!
//! A target is `hbase://HOST[:PORT][,HOST[:PORT]]…?option=value`, where each host is a gateway (port 9090). Beside the options of every
//! server there are
//!
//! | option | | if not given |
//! |---|---|---|
//! | `durability` | what a write waits for: `default` (the table's own), `skip`, `async`, `sync`, `fsync` | `default` |
//! | `load_durability` | the same while tables are loaded | as `durability` |
//! | `page` | rows that a gateway sends in one answer | 1000 |
//! | `scanner_caching` | rows that a gateway fetches from a region server at a time | as `page` |
//! | `transport` | `buffered` or `framed`, as the gateways were started | `buffered` |
//! | `connections` | the most connections of a run; operations beyond that wait | one for each operation in flight |
//! | `admin` | `HOST:PORT` of the lab's administration, which does what gateways cannot: flushes, compactions, sizes, counters | |
//!
//! A table's row key is made of columns in bytes that sort like their values, so that rows lie in the order of these columns. Columns
//! of the value are a cell each, a null is not a cell. Where readings stand beside one another in a row, the time within a period is the
//! qualifier of a cell, or its version. What region servers cannot do for a gateway, as reducing rows, is done by the client.

mod bindings;
mod cells;
mod driver;
mod errors;
mod filter;
mod load;
mod namespace;
mod operation;
mod pool;
mod requests;
mod rows;
mod scanning;
mod session;
mod table;
mod target;
mod wire;

use sensorbench_driver::{About, Database, Driver, DriverError, Schema, TargetUrl};

use crate::driver::HbaseDriver;
use crate::operation::Prepared;
use crate::table::HbaseSchema;
use crate::target::Target;

/// The driver.
pub struct HbaseDatabase;

impl Database for HbaseDatabase {
    fn about(&self) -> About {
        About::server("hbase", "HBase, through its Thrift gateways")
    }

    fn open(&self, url: &TargetUrl) -> Result<Box<dyn Driver>, DriverError> {
        Ok(Box::new(HbaseDriver::new(Target::of(url)?)))
    }

    fn check(&self, schema: &Schema) -> Result<(), DriverError> {
        let parsed = HbaseSchema::of(schema)?;
        for operation in &schema.operations {
            Prepared::of(&parsed, operation)?;
        }
        Ok(())
    }

    fn no_op(&self) -> Option<Schema> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLES: &str = "
        [create.table.rows]
        key = [{ name = 'name', type = 'text' }, { name = 'time', type = 'timestamp' }]
        columns = [{ name = 'value', type = 'double' }]
        [create.table.hours]
        key = [{ name = 'hour', type = 'timestamp' }, { name = 'name', type = 'text' }]
        columns = [{ name = 'value', type = 'double' }]
        version = { name = 'time', since = 'hour', period = 'hour', unit = 'minute' }
        [[operations]]
        name = 'q'
        parameters = [{ name = 'name', type = 'text' }, { name = 'at', type = 'timestamp' }, { name = 'x', type = 'double' }]
        columns = [{ name = 'value', type = 'double' }]
        ";

    fn refused(text: &str) -> String {
        HbaseDatabase.check(&toml::from_str(text).unwrap()).expect_err(text).to_string()
    }

    #[test]
    fn wrong_tables_are_told_with_their_place() {
        for (table, expected) in [
            ("key = []", "create.table.t.key: expected at least one column"),
            ("key = [{ name = 'a', type = 'text' }]\ncompression = 'best'", "unknown variant `best`"),
            ("key = [{ name = 'a', type = 'text' }]\nsplits = [[1]]", "create.table.t.splits[0]: column a is a text, not 1"),
            ("key = [{ name = 'a', type = 'text' }]\nsplits = [['a', 'b']]", "expected values for the first of the key's 1"),
            ("key = [{ name = 'a', type = 'text' }]\ncolumns = [{ name = 'a', type = 'text' }]", "the column a is there twice"),
            (
                "key = [{ name = 'a', type = 'text' }]\nversion = { name = 'b', since = 'a', period = 'day', unit = 'minute' }",
                "create.table.t.version.since: the key has no column a of type timestamp",
            ),
            (
                "key = [{ name = 'a', type = 'timestamp' }]\nqualifier = { name = 'b', since = 'a', period = 'day', unit = 'minute' }",
                "create.table.t.columns: expected one column",
            ),
        ] {
            let message = refused(&format!("[create.table.t]\n{table}"));
            assert!(message.contains(expected), "{message}");
        }
        let fill = "[[tables.t]]\nname = 'b'\ntype = 'text'\n[create.table.t]\nkey = [{ name = 'a', type = 'text' }]";
        assert!(refused(fill).contains("fill.t.query: the fill has no column a"));
    }

    #[test]
    fn wrong_operations_are_told_with_their_place() {
        for (statement, expected) in [
            ("", "operation.q: expected one of scan, get, put"),
            ("scan = { table = 'x' }", "operation.q.scan.table: there is no table x; expected one of hours, rows"),
            ("scan = { table = 'hours' }", "the time of table hours is kept apart; expected get"),
            ("scan = { table = 'rows', prefix = [':at'] }", "scan.prefix[0]: parameter :at has type timestamp, expected text"),
            ("scan = { table = 'rows', prefix = ['AC1'] }", "\"AC1\": expected a parameter, written as :name"),
            ("scan = { table = 'rows', prefix = [':name', ':at'] }", "a whole key is one row; expected get"),
            ("scan = { table = 'rows', where = { time = { to = ':at' } } }", "scan.where.time: the value has no column time"),
            ("get = { table = 'rows', key = [':name'] }", "get.key: expected a parameter for each of name, time"),
            ("get = { table = 'rows', key = [':name', ':at'], at = ':at' }", "the table keeps no time apart"),
            ("get = { table = 'hours', key = [':name'] }", "operation.q.get: expected from and to, or at"),
            ("put = { table = 'rows', values = { name = ':name' } }", "put.values: the column time is missing"),
            ("put = { table = 'hours', values = { name = ':name', time = ':at' } }", "put.values: the column value is missing"),
            ("put = { table = 'rows', values = { other = ':x' } }", "put.values.other: table rows has no column other"),
        ] {
            let message = refused(&format!("{TABLES}\n[operations.statement]\n{statement}"));
            assert!(message.contains(expected), "{message}");
        }
        let right = "get = { table = 'hours', key = [':name'], at = ':at' }";
        HbaseDatabase.check(&toml::from_str(&format!("{TABLES}\n[operations.statement]\n{right}")).unwrap()).unwrap();
    }
}
