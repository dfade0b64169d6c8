//! How a database that speaks MySQL's protocol words what the driver wants of it.
//!
//! Everything has a default, which is MySQL's own, so that a [`Dialect`] states what it is called and what it does in another way. How a
//! dialect is asked for the plan of a statement is data of the control plane, by [`About::schemas`].

mod catalog;
mod mariadb;
mod mysql;
mod names;

use std::collections::BTreeMap;

use futures::future::LocalBoxFuture;
use mysql_async::Conn;
use sensorbench_driver::{About, Description, Size};

pub use self::mariadb::Mariadb;
pub use self::mysql::Mysql;
pub use self::names::{MARKER_COMMENT, MARKER_TABLE, quoted};

/// A relational server with the schemas of MySQL.
pub const fn relational(name: &'static str, summary: &'static str) -> About {
    About {
        schemas: "mysql",
        relational: true,
        bulk_load: Some("LOAD DATA LOCAL"),
        replays: Some("mysql"),
        ..About::server(name, summary)
    }
}

/// One database that speaks MySQL's protocol. Texts are SQL; `namespace` is the name of sensorbench's database, not quoted.
pub trait Dialect: Send + Sync {
    /// What the database is: [`relational`] with a name and a line, or more.
    fn about(&self) -> About;

    /// The port where the URL names none.
    fn default_port(&self) -> u16 {
        3306
    }

    /// Options of the URL besides those of every server.
    fn options(&self) -> &'static [&'static str] {
        &[]
    }

    /// What every statement of ours expects: text in UTF-8, times in UTC, values that do not fit refused, and figures of tables as they are
    /// now (MySQL keeps them for a day otherwise; MariaDB knows no such setting and passes over the comment).
    fn session_settings(&self) -> &'static str {
        "SET NAMES utf8mb4; \
    SET sql_mode = 'TRADITIONAL', time_zone = '+00:00', autocommit = 1 /*!80000 , information_schema_stats_expiry = 0 */"
    }

    /// What a session of a replay expects: text in UTF-8. Everything else is as the server gives it to any client.
    fn replay_settings(&self) -> &'static str {
        "SET NAMES utf8mb4"
    }

    /// Has the server refuse whatever a session would change.
    fn read_only(&self) -> &'static str {
        "SET SESSION TRANSACTION READ ONLY"
    }

    /// Tables of a database (`?`) that keep their rows in it: no views, and none whose engine has them elsewhere.
    fn own_tables(&self) -> &'static str {
        "SELECT table_name FROM information_schema.tables WHERE table_schema = ? AND table_type IN ('BASE TABLE', 'SYSTEM VERSIONED') \
            AND engine NOT IN ('FEDERATED', 'CONNECT', 'SPIDER', 'MRG_MyISAM', 'S3')"
    }

    /// Triggers of the tables of a database (`?`): table and name.
    fn triggers(&self) -> &'static str {
        "SELECT event_object_table, trigger_name FROM information_schema.triggers WHERE event_object_schema = ?"
    }

    /// Names of the stored functions that the user may see.
    fn stored_functions(&self) -> &'static str {
        "SELECT DISTINCT routine_name FROM information_schema.routines WHERE routine_type = 'FUNCTION'"
    }

    /// What distinguishes a server from others, should one address lead to several.
    fn identity(&self) -> &'static str {
        "SELECT concat_ws(':', @@hostname, @@port, @@server_id)"
    }

    /// A statement that does as little as possible and returns one integer.
    fn no_op(&self) -> &'static str {
        "SELECT 1"
    }

    /// How many databases have the first name, and how many tables there are in the second with this name and comment (`?` four times).
    fn occupant(&self) -> &'static str {
        "SELECT (SELECT count(*) FROM information_schema.schemata WHERE schema_name = ?), \
            (SELECT count(*) FROM information_schema.tables WHERE table_schema = ? AND table_name = ? AND table_comment = ?)"
    }

    /// Names of databases with a table of this name and comment (`?` twice), of those that the user may see.
    fn namespaces(&self) -> &'static str {
        "SELECT table_schema FROM information_schema.tables WHERE table_name = ? AND table_comment = ? ORDER BY 1"
    }

    /// Statements that create the namespace with an empty table for the marker.
    fn create_namespace(&self, namespace: &str) -> Vec<String> {
        vec![
            format!("CREATE DATABASE {} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", quoted(namespace)),
            format!("CREATE TABLE {} (mark LONGTEXT NOT NULL) COMMENT = '{MARKER_COMMENT}'", marker_table(namespace)),
        ]
    }

    /// Writes the first marker, `?`.
    fn insert_marker(&self, namespace: &str) -> String {
        format!("INSERT INTO {} (mark) VALUES (?)", marker_table(namespace))
    }

    /// Writes another marker, `?`.
    fn update_marker(&self, namespace: &str) -> String {
        format!("UPDATE {} SET mark = ?", marker_table(namespace))
    }

    /// Reads the marker.
    fn marker(&self, namespace: &str) -> String {
        format!("SELECT mark FROM {}", marker_table(namespace))
    }

    /// Removes the namespace with all that is in it.
    fn remove_namespace(&self, namespace: &str) -> String {
        format!("DROP DATABASE {}", quoted(namespace))
    }

    /// Makes a namespace the one whose tables statements mean.
    fn enter(&self, namespace: &str) -> String {
        format!("USE {}", quoted(namespace))
    }

    /// Ends what a connection executes.
    fn kill_statement(&self, connection_id: u32) -> String {
        format!("KILL QUERY {connection_id}")
    }

    /// Ends a connection.
    fn kill_connection(&self, connection_id: u32) -> String {
        format!("KILL {connection_id}")
    }

    /// What answers, and how it is set.
    fn describe<'a>(&'a self, connection: &'a mut Conn) -> LocalBoxFuture<'a, mysql_async::Result<Description>> {
        Box::pin(catalog::describe(connection))
    }

    /// Has the server write what is only in memory to the tables' files, where the user may ask for that.
    fn flush<'a>(&'a self, namespace: &'a str, connection: &'a mut Conn) -> LocalBoxFuture<'a, mysql_async::Result<()>> {
        Box::pin(catalog::flush(namespace, connection))
    }

    /// Bytes of the tables and indexes of the namespace.
    fn size<'a>(&'a self, namespace: &'a str, connection: &'a mut Conn) -> LocalBoxFuture<'a, mysql_async::Result<Size>> {
        Box::pin(catalog::size(namespace, connection))
    }

    /// Counters and gauges of the server, by their names there.
    fn status<'a>(&'a self, connection: &'a mut Conn) -> LocalBoxFuture<'a, mysql_async::Result<BTreeMap<String, f64>>> {
        Box::pin(catalog::status(connection))
    }
}

fn marker_table(namespace: &str) -> String {
    format!("{}.{}", quoted(namespace), quoted(MARKER_TABLE))
}
