//! sensorbench's own tables in a database that others use, too: those whose names begin with the namespace and that the mark
//! table names.

use std::collections::BTreeSet;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use sensorbench_driver::{DriverError, SchemaError, SqlSchema, Type, ValueRef};

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

/// Whose the mark table is.
#[derive(Debug, PartialEq)]
enum Occupant {
    Nobody,
    Sensorbench,
    Other,
}

impl Namespace<'_> {
    /// Creates the mark table and the tables of a schema.
    pub fn create(&self, schema: &SqlSchema, mark: &str, replace: bool) -> Result<(), DriverError> {
        self.make_room(replace)?;
        self.refuse_foreign_tables(schema)?;
        self.control.run(&format!("CREATE TABLE {} ({DECLARED})", self.mark_table()))?;
        self.set_mark(mark)?;
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

    /// An error unless sensorbench created the namespace.
    pub fn require(&self) -> Result<(), DriverError> {
        match self.occupant()? {
            Occupant::Sensorbench => Ok(()),
            _ => Err(self.error("sensorbench created nothing there; load it first")),
        }
    }

    /// The mark, or None when sensorbench created nothing.
    pub fn mark(&self) -> Result<Option<String>, DriverError> {
        match self.occupant()? {
            Occupant::Sensorbench => {
                let encoded = self.noted(MARK_KIND)?.concat();
                Ok(Some(percent_decode_str(&encoded).decode_utf8_lossy().into_owned()))
            }
            _ => Ok(None),
        }
    }

    pub fn set_mark(&self, mark: &str) -> Result<(), DriverError> {
        self.control.in_transaction(|| {
            self.control.run(&format!("DELETE FROM {} WHERE sensorbench_kind = '{MARK_KIND}'", self.mark_table()))?;
            let encoded = utf8_percent_encode(mark, FRAGILE).to_string();
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
        if self.occupant()? != Occupant::Sensorbench {
            return Ok(());
        }
        // Later ones may refer to earlier ones.
        for table in self.tables()?.iter().rev() {
            let table = self.control.link.names.table(table);
            if self.control.is_there(&table)? {
                self.control.run(&format!("DROP TABLE {table}"))?;
            }
        }
        self.control.run(&format!("DROP TABLE {}", self.mark_table()))
    }

    fn make_room(&self, replace: bool) -> Result<(), DriverError> {
        match self.occupant()? {
            Occupant::Nobody => Ok(()),
            Occupant::Other => Err(self.foreign(&self.mark_table())),
            Occupant::Sensorbench if !replace => Err(self.error(
                "it holds data of an earlier run of sensorbench; give --replace to load it again, or name another one with \
                 namespace= in the URL",
            )),
            Occupant::Sensorbench => self.remove(),
        }
    }

    fn refuse_foreign_tables(&self, schema: &SqlSchema) -> Result<(), DriverError> {
        let names = &self.control.link.names;
        let tables: BTreeSet<String> = schema.create().flat_map(|(_, statement)| names.place(statement).tables).collect();
        for table in tables {
            let table = names.table(&table);
            if self.control.is_there(&table)? {
                return Err(self.foreign(&table));
            }
        }
        Ok(())
    }

    fn occupant(&self) -> Result<Occupant, DriverError> {
        let table = self.mark_table();
        if self.control.succeeds(&format!("SELECT {COLUMNS} FROM {table} WHERE 1 = 0"))? {
            return Ok(Occupant::Sensorbench);
        }
        Ok(if self.control.is_there(&table)? { Occupant::Other } else { Occupant::Nobody })
    }

    /// Notes a table that was just created. One that cannot be noted would be in the way for ever, as somebody else's.
    fn note_created(&self, place: usize, table: &str) -> Result<(), DriverError> {
        self.note(TABLE_KIND, place, table).inspect_err(|_| {
            // The error of the note is told, whether this succeeds or not.
            let _ = self.control.run(&format!("DROP TABLE {}", self.control.link.names.table(table)));
        })
    }

    fn note(&self, kind: &str, place: usize, text: &str) -> Result<(), DriverError> {
        let insert = format!("INSERT INTO {} ({COLUMNS}) VALUES (?, ?, ?)", self.mark_table());
        let values = [ValueRef::Text(kind), ValueRef::Integer(place as i64), ValueRef::Text(text)];
        self.control.ask(insert, &values, &[]).map(drop)
    }

    /// Texts of this kind, by their places.
    fn noted(&self, kind: &str) -> Result<Vec<String>, DriverError> {
        let question =
            format!("SELECT sensorbench_place, sensorbench_text FROM {} WHERE sensorbench_kind = ?", self.mark_table());
        let rows = self.control.ask(question, &[ValueRef::Text(kind)], &[Type::Integer, Type::Text])?;
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

    fn mark_table(&self) -> String {
        self.control.link.names.table(MARK)
    }

    fn foreign(&self, table: &str) -> DriverError {
        self.error(&format!(
            "sensorbench did not create the table {table} and does not touch it; \
             name another namespace with namespace= in the URL"
        ))
    }

    fn error(&self, message: &str) -> DriverError {
        let link = self.control.link;
        DriverError::Namespace(format!("{}, namespace {}: {message}", link.target.shown, link.names.namespace()))
    }
}

/// What a statement is refused for is told with its place in the schema file; a lost connection has no place there.
pub fn with_place(place: String, error: DriverError) -> DriverError {
    match error {
        DriverError::Statement(message) => SchemaError::at(place, message).into(),
        other => other,
    }
}
