//! sensorbench's own tables in a database that others use, too: those whose names begin with the namespace and that the mark
//! table names.

use std::collections::BTreeSet;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use sensorbench_driver::{Admission, DriverError, Marker, Occupant, SchemaError, SqlSchema, Type, ValueRef};

use crate::control::Control;
use crate::names::MARK;

/// Columns of the mark table, which nobody else's table has.
const COLUMNS: &str = "sensorbench_kind, sensorbench_place, sensorbench_text";
const DECLARED: &str =
    "sensorbench_kind VARCHAR(8) NOT NULL, sensorbench_place INTEGER NOT NULL, sensorbench_text VARCHAR(1000) NOT NULL";

/// Characters of one row of the mark, which is cut into several where it is longer.
const PIECE: usize = 1000;

/// What is written with percent signs in a mark, besides all that is not ASCII: what not every database keeps in any text.
const FRAGILE: &AsciiSet = &CONTROLS.add(b'%').add(b' ').add(b'\\').add(b'\'').add(b'{').add(b'}');

/// The kinds of rows: pieces of the mark, and tables that were created, in order.
const MARK_KIND: &str = "mark";
const TABLE_KIND: &str = "table";

/// The namespace of a target, seen through a connection.
pub struct Namespace<'a> {
    pub control: &'a Control<'a>,
}

impl Namespace<'_> {
    /// Creates the mark table and the tables of a schema.
    pub fn create(&self, schema: &SqlSchema, marker: &Marker, admission: &Admission) -> Result<(), DriverError> {
        self.refuse_foreign_tables(schema, admission)?;
        if admission.replaces() {
            self.remove()?;
        }
        self.control.run(&format!("CREATE TABLE {} ({DECLARED})", self.marker_table()))?;
        self.write_marker(marker)?;
        let mut created = BTreeSet::new();
        for (place, statement) in schema.create() {
            let placed = self.control.link.names.place(statement);
            self.control.run(&placed.text).map_err(|error| with_place(place, error))?;
            for table in placed.tables {
                if created.insert(table.clone()) {
                    self.note_created(created.len(), &table)?;
                }
            }
        }
        Ok(())
    }

    pub fn write_marker(&self, marker: &Marker) -> Result<(), DriverError> {
        self.control.in_transaction(|| {
            self.control.run(&format!("DELETE FROM {} WHERE sensorbench_kind = '{MARK_KIND}'", self.marker_table()))?;
            let encoded = utf8_percent_encode(&marker.to_text(), FRAGILE).to_string();
            let mut pieces = encoded.as_bytes().chunks(PIECE).map(String::from_utf8_lossy).enumerate();
            pieces.try_for_each(|(place, piece)| self.note(MARK_KIND, place, &piece))
        })
    }

    /// The tables that sensorbench created, as the schema calls them, in the order of their creation.
    pub fn tables(&self) -> Result<Vec<String>, DriverError> {
        self.noted(TABLE_KIND)
    }

    /// Drops what sensorbench created, and nothing else.
    pub fn remove(&self) -> Result<(), DriverError> {
        // Later ones may refer to earlier ones.
        for table in self.tables()?.iter().rev() {
            let table = self.control.link.names.table(table);
            if self.control.is_there(&table)? {
                self.control.run(&format!("DROP TABLE {table}"))?;
            }
        }
        self.control.run(&format!("DROP TABLE {}", self.marker_table()))
    }

    /// Others use the database, too: a table of the schema may be theirs although the namespace is free or ours.
    fn refuse_foreign_tables(&self, schema: &SqlSchema, admission: &Admission) -> Result<(), DriverError> {
        let names = &self.control.link.names;
        let ours = if admission.replaces() { self.tables()? } else { Vec::new() };
        let tables: BTreeSet<String> = schema.create().flat_map(|(_, statement)| names.place(statement).tables).collect();
        for table in tables.iter().filter(|table| !ours.contains(table)) {
            let table = names.table(table);
            if self.control.is_there(&table)? {
                let link = self.control.link;
                return Err(DriverError::Namespace(format!(
                    "{}, namespace {}: the table {table} is somebody's. sensorbench did not create it and never changes or deletes \
                     it; name another namespace with namespace= in the URL",
                    link.target.shown,
                    names.namespace()
                )));
            }
        }
        Ok(())
    }

    pub fn occupant(&self) -> Result<Occupant, DriverError> {
        let table = self.marker_table();
        if self.control.succeeds(&format!("SELECT {COLUMNS} FROM {table} WHERE 1 = 0"))? {
            let encoded = self.noted(MARK_KIND)?.concat();
            let text = percent_decode_str(&encoded).decode_utf8_lossy();
            return Ok(Occupant::Ours(Marker::parse(&text).unwrap_or_default()));
        }
        Ok(if self.control.is_there(&table)? {
            Occupant::Foreign(format!("the table {table} is somebody's"))
        } else {
            Occupant::Absent
        })
    }

    /// Notes a table that was just created. One that cannot be noted would be in the way for ever, as somebody else's.
    fn note_created(&self, place: usize, table: &str) -> Result<(), DriverError> {
        self.note(TABLE_KIND, place, table).inspect_err(|_| {
            // The error of the note is reported, whether this succeeds or not.
            let _ = self.control.run(&format!("DROP TABLE {}", self.control.link.names.table(table)));
        })
    }

    fn note(&self, kind: &str, place: usize, text: &str) -> Result<(), DriverError> {
        let insert = format!("INSERT INTO {} ({COLUMNS}) VALUES (?, ?, ?)", self.marker_table());
        let values = [ValueRef::Text(kind), ValueRef::Integer(place as i64), ValueRef::Text(text)];
        self.control.ask(insert, &values, &[]).map(drop)
    }

    /// Texts of this kind, by their places.
    fn noted(&self, kind: &str) -> Result<Vec<String>, DriverError> {
        let operation_statement =
            format!("SELECT sensorbench_place, sensorbench_text FROM {} WHERE sensorbench_kind = ?", self.marker_table());
        let rows = self.control.ask(operation_statement, &[ValueRef::Text(kind)], &[Type::Integer, Type::Text])?;
        let mut noted: Vec<(i64, String)> = rows
            .iter()
            .filter_map(|row| match (row.value(0), row.value(1)) {
                (ValueRef::Integer(place), ValueRef::Text(text)) => Some((place, text.to_owned())),
                _ => None,
            })
            .collect();
        noted.sort();
        Ok(noted.into_iter().map(|(_, text)| text).collect())
    }

    fn marker_table(&self) -> String {
        self.control.link.names.table(MARK)
    }
}

/// An error that refuses a statement names its place in the schema file; a lost connection has no place there.
pub fn with_place(place: String, error: DriverError) -> DriverError {
    match error {
        DriverError::Statement(message) => SchemaError::at(place, message).into(),
        other => other,
    }
}
