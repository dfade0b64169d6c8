//! Elements of a reply become rows of an answer.

use sensorbench_dataset::encoding::KeyPart;
use sensorbench_driver::{DriverError, Operation, Parameter, Rows, SchemaError, ValueRef};

use crate::word::{Fields, Word, WordText};

/// Elements that a row may be made of, and columns that it may have, so that they fit on the stack while it is read.
pub const MAX_ELEMENTS: usize = 32;

/// How rows are read: each of this many elements, one after the other.
#[derive(Clone, Debug)]
pub struct Answer {
    operation: String,
    /// What the elements of a row look like. None when the answer is not wanted.
    elements: Vec<Element>,
    columns: usize,
    /// Whether the elements bring the columns in their declared order, so that values go straight to the rows.
    in_order: bool,
}

#[derive(Clone, Debug)]
struct Element {
    word: Word,
    /// What it looks like, for messages.
    text: String,
}

impl Answer {
    /// Reads `row` of an operation in a schema file. Without it, each element is a column.
    pub fn of(operation: &Operation, row: Option<&[WordText]>) -> Result<Self, SchemaError> {
        let path = format!("operation.{}.row", operation.name);
        let column = |column: &sensorbench_driver::Column| WordText::Template(format!("{{{}}}", column.name));
        let each_a_column: Vec<_> = operation.columns.iter().map(column).collect();
        let texts = row.unwrap_or(&each_a_column);
        let fields = columns(operation);
        let element = |(number, text): (usize, &WordText)| {
            let word = Word::of(&format!("{path}[{number}]"), text, &fields)?;
            Ok(Element { word, text: format!("{text:?}") })
        };
        let elements: Vec<Element> = texts.iter().enumerate().map(element).collect::<Result<_, SchemaError>>()?;
        check_columns(&path, operation, &elements)?;
        let places: Vec<usize> = elements.iter().flat_map(|element| element.word.places()).collect();
        Ok(Self { operation: operation.name.clone(), elements, columns: operation.columns.len(), in_order: places.is_sorted() })
    }

    /// Number of elements of a row; none when the answer is not wanted.
    #[inline]
    pub fn elements(&self) -> usize {
        self.elements.len()
    }

    /// Reads one row. Where all elements are nil there is none: the key, or the field, does not exist.
    #[inline]
    pub fn read_row(&self, elements: &[Option<&[u8]>], rows: &mut Rows) -> Result<(), DriverError> {
        if elements.iter().all(Option::is_none) {
            return Ok(());
        }
        if self.in_order {
            self.read(elements, |_, part| rows.push(part.value()))?;
        } else {
            self.read_in_any_order(elements, rows)?;
        }
        rows.end_row();
        Ok(())
    }

    #[inline(never)]
    fn read_in_any_order(&self, elements: &[Option<&[u8]>], rows: &mut Rows) -> Result<(), DriverError> {
        let mut row = [const { KeyPart::Borrowed(ValueRef::Null) }; MAX_ELEMENTS];
        self.read(elements, |place, part| row[place] = part)?;
        row[..self.columns].iter().for_each(|part| rows.push(part.value()));
        Ok(())
    }

    #[inline]
    fn read<'a>(&self, elements: &[Option<&'a [u8]>], mut visit: impl FnMut(usize, KeyPart<'a>)) -> Result<(), DriverError> {
        for (expected, element) in self.elements.iter().zip(elements) {
            match element {
                None => expected.word.places().for_each(|place| visit(place, KeyPart::Borrowed(ValueRef::Null))),
                Some(element) if expected.word.read(element, &mut visit) => {}
                Some(element) => return Err(self.other_form(expected, element)),
            }
        }
        Ok(())
    }

    #[cold]
    fn other_form(&self, expected: &Element, element: &[u8]) -> DriverError {
        let shown = String::from_utf8_lossy(&element[..element.len().min(64)]).escape_debug().to_string();
        DriverError::Data(format!(
            "operation {}: the reply has \"{shown}\" ({} bytes) where {} was expected",
            self.operation,
            element.len(),
            expected.text
        ))
    }

    /// What to say of a reply that ends within a row.
    #[cold]
    pub fn unfinished(&self, left_over: usize) -> DriverError {
        DriverError::Data(format!(
            "operation {}: a row is {} elements, but the reply ends with {left_over}",
            self.operation,
            self.elements.len()
        ))
    }
}

fn columns(operation: &Operation) -> Fields {
    let field = |column: &sensorbench_driver::Column| Parameter { name: column.name.clone(), value_type: column.value_type };
    Fields { owner: format!("operation {}", operation.name), kind: "column", list: operation.columns.iter().map(field).collect() }
}

/// Every column comes once.
fn check_columns(path: &str, operation: &Operation, elements: &[Element]) -> Result<(), SchemaError> {
    let columns = &operation.columns;
    if elements.len().max(columns.len()) > MAX_ELEMENTS {
        return Err(SchemaError::at(path, format!("expected at most {MAX_ELEMENTS} elements and columns")));
    }
    for (number, element) in elements.iter().enumerate() {
        if element.word.is_ambiguous() {
            let message = "expected some text between two values, so that it is known where the first one ends";
            return Err(SchemaError::at(format!("{path}[{number}]"), message));
        }
    }
    for (place, column) in columns.iter().enumerate() {
        let times = elements.iter().flat_map(|element| element.word.places()).filter(|found| *found == place).count();
        if times != 1 {
            return Err(SchemaError::at(path, format!("expected column {} once; it is there {times} times", column.name)));
        }
    }
    if columns.is_empty() && !elements.is_empty() {
        return Err(SchemaError::at(path, "the operation has no columns, so its reply is not read"));
    }
    Ok(())
}
