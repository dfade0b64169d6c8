//! What is known of databases that are known. All others are served by what the standard has.

use sensorbench_driver::{Column, Type};

use crate::odbc::Form;

/// Who answers, as drivers call it (SQL_DBMS_NAME).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Dbms {
    Postgresql,
    /// MariaDB and MySQL.
    Mysql,
    Sqlite,
    Other,
}

impl Dbms {
    pub fn of(name: &str) -> Self {
        match name.to_ascii_lowercase().as_str() {
            "postgresql" => Dbms::Postgresql,
            "mariadb" | "mysql" => Dbms::Mysql,
            "sqlite" => Dbms::Sqlite,
            _ => Dbms::Other,
        }
    }

    /// What each connection begins with: times in UTC, values that do not fit refused.
    pub fn greeting(self) -> Option<&'static str> {
        match self {
            Dbms::Postgresql => Some("SET TIME ZONE 'UTC'"),
            Dbms::Mysql => {
                Some("SET sql_mode = 'TRADITIONAL', time_zone = '+00:00' /*!80000 , information_schema_stats_expiry = 0 */")
            }
            Dbms::Sqlite | Dbms::Other => None,
        }
    }

    /// A query for settings that matter to speed and durability: names and values.
    pub fn settings(self) -> Option<&'static str> {
        match self {
            Dbms::Postgresql => Some(
                "SELECT CAST(name AS varchar(100)), CAST(current_setting(name) AS varchar(200)) FROM pg_catalog.pg_settings \
                 WHERE name IN ('data_checksums', 'fsync', 'full_page_writes', 'jit', 'max_connections', 'max_wal_size', \
                 'shared_buffers', 'synchronous_commit', 'wal_level', 'wal_compression', 'work_mem')",
            ),
            Dbms::Mysql => Some(
                "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('version_comment', 'innodb_buffer_pool_size', \
                 'innodb_doublewrite', 'innodb_flush_log_at_trx_commit', 'innodb_flush_method', 'innodb_log_file_size', \
                 'innodb_page_size', 'log_bin', 'max_connections', 'sync_binlog', 'transaction_isolation', 'tx_isolation')",
            ),
            Dbms::Sqlite => Some(
                "SELECT 'journal_mode', journal_mode FROM pragma_journal_mode \
                 UNION ALL SELECT 'synchronous', synchronous FROM pragma_synchronous \
                 UNION ALL SELECT 'page_size', page_size FROM pragma_page_size",
            ),
            Dbms::Other => None,
        }
    }

    /// A statement that counts what a table holds: until then plans, and the sizes that MariaDB and MySQL report, are those of an
    /// empty table. `table` is a word.
    pub fn statistics(self, table: &str) -> Option<String> {
        match self {
            Dbms::Postgresql | Dbms::Sqlite => Some(format!("ANALYZE {table}")),
            Dbms::Mysql => Some(format!("ANALYZE TABLE {table}")),
            Dbms::Other => None,
        }
    }

    /// A query for the bytes of a table with its indexes. `table` is a word.
    pub fn table_bytes(self, table: &str) -> Option<String> {
        match self {
            Dbms::Postgresql => Some(format!("SELECT pg_catalog.pg_total_relation_size('{table}')")),
            Dbms::Mysql => Some(format!(
                "SELECT CAST(coalesce(data_length, 0) + coalesce(index_length, 0) AS SIGNED) FROM information_schema.tables \
                 WHERE table_schema = DATABASE() AND table_name = '{table}'"
            )),
            Dbms::Sqlite | Dbms::Other => None,
        }
    }

    /// A query for the bytes of all that is there, where tables cannot be distinguished.
    pub fn all_bytes(self) -> Option<&'static str> {
        let operation_statement = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
        (self == Dbms::Sqlite).then_some(operation_statement)
    }

    /// Whether an answer is in the client's memory when a statement has been executed, so that there is nothing to call off
    /// afterwards; these drivers are not safe when it is done all the same.
    pub fn answers_at_once(self) -> bool {
        self != Dbms::Other
    }

    /// Whether these parameters must be bound again for each row: SQLite's driver takes the length of the first bytes for that of
    /// all.
    pub fn binds_each_row(self, forms: impl IntoIterator<Item = Form>) -> bool {
        self == Dbms::Sqlite && forms.into_iter().any(|form| form == Form::Bytes)
    }

    /// Whether values are never longer than their columns are described.
    pub fn keeps_to_sizes(self) -> bool {
        self != Dbms::Sqlite
    }

    /// How a column of a table is read exactly.
    pub fn exact(self, name: &str, value_type: Type) -> String {
        match (self, value_type) {
            // Its driver reads doubles as text of 15 digits.
            (Dbms::Sqlite, Type::Double) => format!("CASE WHEN {name} IS NOT NULL THEN quote({name}) END"),
            _ => name.to_owned(),
        }
    }

    /// Why a column that is described as a double is not read exactly.
    pub fn inexact(self, column: &Column) -> Option<String> {
        (self == Dbms::Sqlite && column.value_type == Type::Double && !column.computed).then(|| {
            format!(
                "column {}: SQLite's ODBC driver reads doubles with 15 digits; return {}",
                column.name,
                self.exact(&column.name, Type::Double)
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn databases_are_known_by_what_drivers_call_them() {
        assert_eq!(Dbms::of("PostgreSQL"), Dbms::Postgresql);
        assert_eq!(Dbms::of("MariaDB"), Dbms::of("MySQL"));
        assert_eq!(Dbms::of("SQLite"), Dbms::Sqlite);
        assert_eq!(Dbms::of("Microsoft SQL Server"), Dbms::Other);
    }
}
