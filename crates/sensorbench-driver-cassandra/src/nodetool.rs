//! nodetool, the server's own tool: what only it can do.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use sensorbench_driver::DriverError;
use serde_json::Value as Json;

/// Bytes of a table on one node.
#[derive(Debug, Default, PartialEq)]
pub struct TableBytes {
    /// Of all its SSTables.
    pub total: u64,
    /// Of its largest partition, as far as it was compacted.
    pub largest_partition: u64,
}

/// Calls nodetool for a node; its output.
pub fn call(program: &Path, node: IpAddr, arguments: &[&str]) -> Result<String, DriverError> {
    let host = node.to_string();
    let failed = |what: &str| DriverError::Statement(format!("{} -h {host} {}: {what}", program.display(), arguments.join(" ")));
    let mut command = Command::new(program);
    command.args(["-h", &host]).args(arguments).stdin(Stdio::null());
    let ended = command.output().map_err(|error| failed(&error.to_string()))?;
    if !ended.status.success() {
        return Err(failed(String::from_utf8_lossy(&ended.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&ended.stdout).into_owned())
}

/// Calls nodetool for several nodes at once, since starting it takes most of the time; their outputs, in order.
pub fn call_each(program: &Path, nodes: &[IpAddr], arguments: &[&str]) -> Result<Vec<String>, DriverError> {
    std::thread::scope(|scope| {
        let calls: Vec<_> = nodes.iter().map(|node| scope.spawn(|| call(program, *node, arguments))).collect();
        calls.into_iter().map(|call| call.join().expect("calling a program does not panic")).collect()
    })
}

/// Reads what `tablestats -F json KEYSPACE` prints.
pub fn table_bytes(output: &str, keyspace: &str) -> Result<BTreeMap<String, TableBytes>, DriverError> {
    let unreadable = || DriverError::Data(format!("nodetool tablestats {keyspace}: its output has no sizes of tables"));
    // Warnings may come before it.
    let json = output.find('{').map_or(output, |start| &output[start..]);
    let read: Json = serde_json::from_str(json).map_err(|_| unreadable())?;
    let tables = read[keyspace]["tables"].as_object().ok_or_else(unreadable)?;
    let sizes = |(name, table): (&String, &Json)| {
        let bytes = TableBytes {
            total: number(&table["space_used_total"]).ok_or_else(unreadable)?,
            largest_partition: number(&table["compacted_partition_maximum_bytes"]).ok_or_else(unreadable)?,
        };
        Ok((name.clone(), bytes))
    };
    tables.iter().map(sizes).collect()
}

/// A number that is printed as one or as text.
fn number(value: &Json) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_whether_they_are_numbers_or_text() {
        let output = r#"WARN something
            {"total_number_of_tables": 40, "ks": {"read_count": 1, "tables": {
                "t": {"space_used_total": "123", "compacted_partition_maximum_bytes": 60},
                "u": {"space_used_total": 7, "compacted_partition_maximum_bytes": "0"}}}}"#;
        let sizes = table_bytes(output, "ks").unwrap();
        assert_eq!(sizes["t"], TableBytes { total: 123, largest_partition: 60 });
        assert_eq!(sizes["u"], TableBytes { total: 7, largest_partition: 0 });
        assert!(table_bytes("nothing", "ks").unwrap_err().to_string().contains("no sizes of tables"));
    }

    #[test]
    fn a_program_that_fails_is_told_with_its_words() {
        let error = call(Path::new("/bin/cat"), IpAddr::from([127, 0, 0, 1]), &["flush"]).unwrap_err().to_string();
        assert!(error.starts_with("/bin/cat -h 127.0.0.1 flush: ") && error.len() > 40, "{error}");
    }
}
