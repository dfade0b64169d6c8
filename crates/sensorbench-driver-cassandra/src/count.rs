//! Counting the rows of a table: ring range by ring range, because a server gives one statement only some seconds.

use futures::stream::{self, TryStreamExt};
use scylla::client::session::Session;
use scylla::errors::ExecutionError;
use scylla::statement::Consistency;
use scylla::statement::prepared::PreparedStatement;
use sensorbench_driver::{DriverError, quoted};

use crate::target::Target;
use crate::{catalogue, errors};

const RANGES: i128 = 256;
const RANGES_AT_A_TIME: usize = 4;

/// Counts the rows of a table in the namespace: all that were acknowledged, whichever replicas have them by now. Where a node is down, the replicas
/// that are up are counted.
pub async fn count(session: &Session, target: &Target, table: &str) -> Result<u64, DriverError> {
    let unreadable = |error: String| DriverError::Data(format!("table {table}: its rows cannot be counted: {error}"));
    let keyspace = &target.server.namespace;
    let columns = catalogue::columns(session, target, table).await?;
    let mut key: Vec<(i32, String)> = columns
        .iter()
        .filter(|column| column.kind == "partition_key")
        .map(|column| (column.position, quoted(&column.name)))
        .collect();
    if key.is_empty() {
        return Err(unreadable(format!("the keyspace {keyspace} has no such table")));
    }
    key.sort();
    let key = key.into_iter().map(|(_, name)| name).collect::<Vec<_>>().join(", ");
    let query =
        format!("SELECT count(*) FROM {}.{} WHERE token({key}) >= ? AND token({key}) <= ?", quoted(keyspace), quoted(table));
    let mut prepared = session.prepare(query).await.map_err(|error| errors::prepare_error(&target.shown, table, &error))?;
    let mut level = that_sees_writes_at(target.write_consistency.unwrap_or(target.consistency));
    loop {
        prepared.set_consistency(level);
        match (count_ranges(session, &prepared).await, that_needs_fewer_than(level)) {
            (Ok(rows), _) => return Ok(rows),
            (Err(Uncounted::Refused(error)), Some(lower)) if errors::is_unavailable(&error) => level = lower,
            (Err(Uncounted::Refused(error)), _) => return Err(errors::execution_error(&target.shown, *error)),
            (Err(Uncounted::Unreadable(error)), _) => return Err(unreadable(error)),
        }
    }
}

/// Why rows were not counted.
enum Uncounted {
    Refused(Box<ExecutionError>),
    Unreadable(String),
}

async fn count_ranges(session: &Session, prepared: &PreparedStatement) -> Result<u64, Uncounted> {
    let of_range = async |range: (i64, i64)| {
        let answer = session.execute_unpaged(prepared, range).await.map_err(|error| Uncounted::Refused(Box::new(error)))?;
        let rows = answer.into_rows_result().map_err(|error| Uncounted::Unreadable(error.to_string()))?;
        rows.single_row::<(i64,)>().map(|(rows,)| rows as u64).map_err(|error| Uncounted::Unreadable(error.to_string()))
    };
    let counts = stream::iter(ranges().map(Ok)).map_ok(of_range).try_buffer_unordered(RANGES_AT_A_TIME);
    counts.try_fold(0, async |sum, rows| Ok(sum + rows)).await
}

/// The level at which a read sees all writes that were acknowledged at a level, because it reads at least one replica that has them. What one
/// replica has acknowledged, the others may get by hints much later.
fn that_sees_writes_at(writes: Consistency) -> Consistency {
    match writes {
        Consistency::All => Consistency::One,
        Consistency::Quorum | Consistency::LocalQuorum => writes,
        Consistency::EachQuorum => Consistency::LocalQuorum,
        _ => Consistency::All,
    }
}

/// The next lower level.
fn that_needs_fewer_than(level: Consistency) -> Option<Consistency> {
    match level {
        Consistency::All => Some(Consistency::Quorum),
        Consistency::Quorum | Consistency::LocalQuorum => Some(Consistency::One),
        _ => None,
    }
}

/// Ranges of tokens, both ends in them, that are the whole ring.
fn ranges() -> impl Iterator<Item = (i64, i64)> {
    let start = |number: i128| i128::from(i64::MIN) + (1_i128 << 64) * number / RANGES;
    (0..RANGES).map(move |number| (start(number) as i64, (start(number + 1) - 1) as i64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{READ_CONSISTENCIES, WRITE_CONSISTENCIES, consistency_of, word_of};

    #[test]
    fn a_count_reads_a_replica_that_has_each_write() {
        const REPLICAS: u32 = 3;
        let replicas_of = |level| match level {
            Consistency::All => REPLICAS,
            Consistency::Quorum | Consistency::LocalQuorum | Consistency::EachQuorum => REPLICAS / 2 + 1,
            Consistency::Three => 3,
            Consistency::Two => 2,
            _ => 1,
        };
        for word in WRITE_CONSISTENCIES {
            let writes = consistency_of(word).unwrap();
            let reads = that_sees_writes_at(writes);
            assert!(replicas_of(writes) + replicas_of(reads) > REPLICAS, "{word}");
            assert!(READ_CONSISTENCIES.contains(&word_of(reads)), "{word}");
        }
    }

    #[test]
    fn the_ranges_are_the_whole_ring_without_gaps() {
        let ranges: Vec<_> = ranges().collect();
        assert_eq!((ranges[0].0, ranges[255].1), (i64::MIN, i64::MAX));
        assert!(ranges.windows(2).all(|pair| pair[0].1 + 1 == pair[1].0));
    }
}
