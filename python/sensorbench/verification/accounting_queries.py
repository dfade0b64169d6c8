"""What must be there of each reading that was delivered, by a rule for duplicates, and whether it is: the queries of accounting.

`delivered` has a row for each delivery, `grouped` one for each reading that was delivered. Both may have a part of the readings alone, as long as that has
all deliveries of each of them.
"""

import duckdb

from sensorbench.results.summary.accounting import Rule

# Sums of hashes are taken modulo 2^64.
WORD = 18446744073709551616

# When what was loaded was written: before all runs, and before their markers, which may begin before a run's clock does.
LOADED_NS = -(1 << 62)

# What was delivered of each reading.
GROUP = """
CREATE OR REPLACE TEMP TABLE grouped AS
SELECT {key}, count(*) AS deliveries, count(*) FILTER (WHERE is_ok) AS acknowledged, any_value(hash) AS any_hash,
  max(start_ns) FILTER (WHERE is_ok) AS last_start_ns, max(end_ns) AS last_end_ns, min(end_ns) FILTER (WHERE is_ok) AS first_end_ns,
  max(ranked) FILTER (WHERE is_ok) AS highest, CAST(coalesce(sum(hash) FILTER (WHERE is_ok), 0) % {word} AS UBIGINT) AS sum_hash
FROM delivered GROUP BY {key}
"""
# Which of several deliveries may be the one that counts, where one does. Of two that overlapped in time, either may have come last or first; one
# of unknown outcome may take effect at any time after it was sent.
_ADMITS: dict[Rule, str] = {
    "last": "NOT is_ok OR end_ns >= last_start_ns",
    "first": "start_ns <= coalesce(first_end_ns, start_ns)",
    "highest": "ranked >= coalesce(highest, ranked)",
    "any": "true",
}
# What must be there of each reading: `rows` with one of the sums of hashes `choices`; with some of `maybe` besides where deliveries add up.
_EXPECT_ONE = """
CREATE OR REPLACE TEMP TABLE {table} AS
WITH several AS (
  SELECT {key}, list_distinct(list(hash)) AS admitted FROM delivered JOIN {source} USING ({key})
  WHERE deliveries > 1 AND ({admits}) GROUP BY {key})
SELECT {key}, deliveries, acknowledged, false AS adds, CAST(acknowledged > 0 AS BIGINT) AS rows, coalesce(admitted, [any_hash]) AS choices,
  CAST([] AS UBIGINT[]) AS maybe, acknowledged > 0 AND len(coalesce(admitted, [any_hash])) = 1 AS is_sure
FROM {source} LEFT JOIN several USING ({key})
"""
_EXPECT_ALL = """
CREATE OR REPLACE TEMP TABLE {table} AS
WITH unknown AS (SELECT {key}, list(hash) AS of_unknown FROM delivered WHERE NOT is_ok GROUP BY {key})
SELECT {key}, deliveries, acknowledged, true AS adds, acknowledged AS rows, [sum_hash] AS choices,
  coalesce(of_unknown, CAST([] AS UBIGINT[])) AS maybe, deliveries = acknowledged AS is_sure
FROM {source} LEFT JOIN unknown USING ({key})
"""
# Deliveries with the same value are one.
_EXPECT_DISTINCT = """
CREATE OR REPLACE TEMP TABLE {table} AS
WITH values_of AS (
  SELECT {key}, coalesce(list(DISTINCT hash) FILTER (WHERE is_ok), CAST([] AS UBIGINT[])) AS known,
    coalesce(list(DISTINCT hash) FILTER (WHERE NOT is_ok), CAST([] AS UBIGINT[])) AS of_unknown
  FROM delivered JOIN {source} USING ({key}) WHERE deliveries > 1 OR acknowledged = 0 GROUP BY {key}),
added AS (SELECT * REPLACE (list_filter(of_unknown, lambda one: NOT list_contains(known, one)) AS of_unknown) FROM values_of)
SELECT {key}, deliveries, acknowledged, true AS adds, coalesce(len(known), acknowledged) AS rows,
  [CASE WHEN known IS NULL THEN sum_hash ELSE CAST(coalesce(list_sum(known), 0) % {word} AS UBIGINT) END] AS choices,
  coalesce(of_unknown, CAST([] AS UBIGINT[])) AS maybe, len(coalesce(of_unknown, CAST([] AS UBIGINT[]))) = 0 AS is_sure
FROM {source} LEFT JOIN added USING ({key})
"""
# Whether what was found of a reading is as it must be. Of three and more deliveries of unknown outcome only the number of rows is known.
RIGHT = f"""
(acknowledged = 0 AND found_rows = 0)
OR (NOT adds AND found_rows = 1 AND list_contains(choices, found_hash))
OR (adds AND found_rows BETWEEN rows AND rows + len(maybe) AND CASE found_rows - rows
  WHEN 0 THEN found_hash = choices[1]
  WHEN len(maybe) THEN found_hash = (CAST(choices[1] AS HUGEINT) + list_sum(maybe)) % {WORD}
  WHEN 1 THEN list_contains([(CAST(choices[1] AS HUGEINT) + one) % {WORD} FOR one IN maybe], CAST(found_hash AS HUGEINT))
  ELSE true END)
"""
# Series are cut into ranges that are read whole. Of a reading that may be one of several, a range has nothing else. The reading `beyond`, the first
# one of the next part, says where the last range ends.
PLACE = """
CREATE OR REPLACE TEMP TABLE placed AS
WITH neighbours AS (
  SELECT *, row_number() OVER along AS place, coalesce(lag(is_sure) OVER along, true) AS was_sure,
    {time} AS "from", coalesce(lead({time}) OVER along, {time} + INTERVAL 1 MILLISECOND) AS "to"
  FROM (SELECT *, false AS beyond FROM expected UNION ALL BY NAME SELECT *, true AS beyond FROM next_reading)
  WINDOW along AS ({partition} ORDER BY {time}))
SELECT * EXCLUDE (beyond),
  sum(CAST(place % {per_range} = 1 OR NOT is_sure OR NOT was_sure AS BIGINT)) OVER (ORDER BY {key} ROWS UNBOUNDED PRECEDING) - 1 AS part
FROM neighbours WHERE NOT beyond
"""
CUT = """
CREATE OR REPLACE TEMP TABLE ranges AS
SELECT part, {series} min("from") AS "from", max("to") AS "to", count(*) AS readings, bool_and(is_sure) AS is_sure, sum(rows) AS rows,
  CAST(sum(choices[1]) % {word} AS UBIGINT) AS hash
FROM placed GROUP BY {series} part
"""
DIFFERENT = """
CREATE OR REPLACE TEMP TABLE different AS
SELECT part, sum(readings) OVER (ORDER BY part ROWS UNBOUNDED PRECEDING) - readings AS before
FROM ranges JOIN found USING (part) WHERE is_sure AND (found_rows <> rows OR found_hash <> hash)
"""
SINGLE = """
CREATE OR REPLACE TEMP TABLE single AS
SELECT row_number() OVER (ORDER BY {key}) - 1 AS number, * FROM placed SEMI JOIN (FROM different WHERE before < {max}) USING (part)
"""
# The readings that were looked at one by one, and what each is: one that has `aged` may have expired after it was expected.
JUDGE = """
CREATE OR REPLACE TEMP TABLE looked_at AS
WITH answered AS (
  SELECT single.*, found_rows, found_hash FROM single LEFT JOIN found_single USING (number)
  UNION ALL BY NAME
  SELECT placed.*, found_rows, found_hash FROM placed LEFT JOIN found USING (part) WHERE NOT placed.is_sure)
SELECT *, CASE
  WHEN found_rows IS NULL THEN 'unanswered'
  WHEN is_expired AND found_rows > 0 THEN 'not_expired'
  WHEN {right} THEN 'right'
  WHEN {aged} THEN 'aged'
  WHEN found_rows < rows THEN 'lost'
  WHEN found_rows > greatest(rows, 1) + len(maybe) THEN 'extra'
  WHEN EXISTS (FROM delivered WHERE {same} AND delivered.hash = answered.found_hash) THEN 'wrong_winner'
  ELSE 'other_value' END AS verdict
FROM answered
"""
# A delivery is out of order when one of its series that is newer came before.
LATENESS = """
INSERT INTO late
WITH arrived AS (
  SELECT {time} AS time, max({time}) OVER ({partition} ORDER BY start_ns, arrival ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS newest,
    row_number() OVER ({partition} ORDER BY start_ns, arrival) - row_number() OVER ({partition} ORDER BY {time}, start_ns, arrival) AS places
  FROM deliveries WHERE rowid >= {first} AND rowid < {end} AND is_ok AND start_ns >= 0)
SELECT coalesce((epoch_us(newest) - epoch_us(time)) / 1e6, 0.0) AS late_s, greatest(places, 0) AS places FROM arrived
"""


def expect(accounts: duckdb.DuckDBPyConnection, rule: Rule, key: str, table: str, source: str) -> None:
    """Makes the table of what must be there by a rule: `rows` of each reading with a sum of hashes that is one of `choices`; where deliveries add
    up (`adds`), with some of `maybe` besides. A reading `is_sure` where that is one thing.

    Args:
        accounts: has the table `delivered`, and `grouped`, which GROUP makes of it.
        rule: which of several deliveries counts.
        key: the columns that identify a reading.
        table: what is made.
        source: the readings it is made for, a part of `grouped`.

    """
    if rule in _ADMITS:
        accounts.execute(_EXPECT_ONE.format(key=key, table=table, source=source, admits=_ADMITS[rule]))
    else:
        query = _EXPECT_ALL if rule == "both" else _EXPECT_DISTINCT
        accounts.execute(query.format(key=key, table=table, source=source, word=WORD))
