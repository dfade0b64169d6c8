//! Columns of a measurement of hosts: its fields as they are shown, and what follows from them, such as what is used of a disk by
//! what is free of it.

use serde::{Deserialize, Serialize};

use super::fields::Fields;

/// What a column shows. Columns and fields are named; a column may name one that comes after it.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Shown {
    /// Always the same.
    Constant(f64),
    /// A field as it is shown, times a factor.
    Field {
        /// Name of the field.
        field: String,
        /// What the shown value is multiplied by.
        factor: f64,
    },
    /// As large a part of a column as a field says, cut to a whole number.
    Part {
        /// Name of the field, which is a share.
        share: String,
        /// Name of the column.
        of: String,
    },
    /// A column without another one.
    Rest {
        /// Name of the column.
        of: String,
        /// Name of the other one.
        without: String,
    },
    /// How many whole units a column holds.
    Units {
        /// Name of the column.
        of: String,
        /// What one unit is.
        unit: f64,
    },
    /// A column in percent of another one.
    Percent {
        /// Name of the column.
        of: String,
        /// Name of the one that is the whole.
        whole: String,
        /// Whether it is cut to a whole number.
        is_whole_number: bool,
    },
}

/// A column of a measurement.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnPlan {
    /// Name of the column.
    pub name: String,
    /// What it shows.
    pub shown: Shown,
}

/// What a column shows, with numbers of columns and fields in the place of names.
enum Resolved {
    Constant(f64),
    Field { field: usize, factor: f64 },
    Part { share: usize, of: usize },
    Rest { of: usize, without: usize },
    Units { of: usize, unit: f64 },
    Percent { of: usize, whole: usize, is_whole_number: bool },
}

impl Resolved {
    /// The columns that must be known before.
    fn needs(&self) -> [Option<usize>; 2] {
        match *self {
            Self::Constant(_) | Self::Field { .. } => [None, None],
            Self::Part { of, .. } | Self::Units { of, .. } => [Some(of), None],
            Self::Rest { of, without } => [Some(of), Some(without)],
            Self::Percent { of, whole, .. } => [Some(of), Some(whole)],
        }
    }
}

/// The columns of a measurement.
pub(super) struct Columns {
    names: Vec<String>,
    columns: Vec<Resolved>,
    /// The numbers of columns, each after those that it follows from.
    order: Vec<usize>,
}

impl Columns {
    /// Columns over fields: those of `plans`, or each field itself where there are none. Panics where a column names what there is not, or
    /// follows from itself.
    pub fn new(plans: &[ColumnPlan], fields: &Fields) -> Self {
        let field_names: Vec<&str> = fields.names().collect();
        if plans.is_empty() {
            let columns = (0..field_names.len()).map(|field| Resolved::Field { field, factor: 1.0 }).collect();
            let names = field_names.iter().map(|name| (*name).to_owned()).collect();
            return Self { names, columns, order: (0..field_names.len()).collect() };
        }
        let names: Vec<String> = plans.iter().map(|plan| plan.name.clone()).collect();
        let field = |name: &String| place_of(&field_names, name);
        let column = |name: &String| place_of(&names, name);
        let columns: Vec<Resolved> = plans
            .iter()
            .map(|plan| match &plan.shown {
                Shown::Constant(value) => Resolved::Constant(*value),
                Shown::Field { field: name, factor } => Resolved::Field { field: field(name), factor: *factor },
                Shown::Part { share, of } => Resolved::Part { share: field(share), of: column(of) },
                Shown::Rest { of, without } => Resolved::Rest { of: column(of), without: column(without) },
                Shown::Units { of, unit } => Resolved::Units { of: column(of), unit: *unit },
                Shown::Percent { of, whole, is_whole_number } => {
                    Resolved::Percent { of: column(of), whole: column(whole), is_whole_number: *is_whole_number }
                }
            })
            .collect();
        let order = order_of(&columns);
        Self { names, columns, order }
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// Puts the values of all columns into `row`, which has room for them, from those of the fields of a device.
    pub fn show(&self, fields: &Fields, values: &[f64], row: &mut [f64]) {
        for &column in &self.order {
            row[column] = match self.columns[column] {
                Resolved::Constant(value) => value,
                Resolved::Field { field, factor } => fields.shown(field, values[field]) * factor,
                Resolved::Part { share, of } => (values[share] * row[of]).trunc(),
                Resolved::Rest { of, without } => row[of] - row[without],
                Resolved::Units { of, unit } => (row[of] / unit).trunc(),
                Resolved::Percent { of, whole, is_whole_number } => {
                    let percent = 100.0 * (row[of] / row[whole]);
                    if is_whole_number { percent.trunc() } else { percent }
                }
            };
        }
    }
}

fn place_of(names: &[impl AsRef<str>], name: &str) -> usize {
    names.iter().position(|known| known.as_ref() == name).unwrap_or_else(|| panic!("there is no {name} that a column names"))
}

/// The numbers of columns, each after those that it follows from.
fn order_of(columns: &[Resolved]) -> Vec<usize> {
    let mut order: Vec<usize> = Vec::with_capacity(columns.len());
    while order.len() < columns.len() {
        let next = (0..columns.len())
            .find(|column| !order.contains(column) && columns[*column].needs().iter().flatten().all(|need| order.contains(need)))
            .expect("no column follows from itself");
        order.push(next);
    }
    order
}

#[cfg(test)]
mod tests {
    use sensorbench_workload::Stream;

    use super::*;
    use crate::generator::fields::{Change, FieldPlan};

    fn fields(names: &[&str]) -> Fields {
        let plan = |name: &&str| FieldPlan {
            name: (*name).to_owned(),
            start: (0.0, 0.0),
            bounds: (0.0, 1e12),
            change: Change::Fixed { step: 0.0 },
            refilled: false,
            decimals: 0,
        };
        Fields::new(names.iter().map(plan).collect(), 1, Stream::new(1))
    }

    fn column(name: &str, shown: Shown) -> ColumnPlan {
        ColumnPlan { name: name.to_owned(), shown }
    }

    #[test]
    fn without_plans_each_field_is_a_column() {
        let fields = fields(&["one", "two"]);
        let columns = Columns::new(&[], &fields);
        let mut row = [0.0; 2];
        columns.show(&fields, &[1.9, 2.1], &mut row);
        assert_eq!((columns.names().collect::<Vec<_>>(), row), (vec!["one", "two"], [1.0, 2.0]));
    }

    #[test]
    fn a_column_may_follow_from_one_that_comes_after_it() {
        let fields = fields(&["units", "share", "free"]);
        let named = str::to_owned;
        let plans = [
            column("total", Shown::Field { field: named("units"), factor: 10.0 }),
            column("available", Shown::Rest { of: named("total"), without: named("used") }),
            column("used", Shown::Part { share: named("share"), of: named("total") }),
            column("percent", Shown::Percent { of: named("used"), whole: named("total"), is_whole_number: false }),
            column("whole_percent", Shown::Percent { of: named("used"), whole: named("total"), is_whole_number: true }),
            column("nodes", Shown::Units { of: named("free"), unit: 4.0 }),
            column("free", Shown::Field { field: named("free"), factor: 1.0 }),
            column("limit", Shown::Constant(7.0)),
        ];
        let columns = Columns::new(&plans, &fields);
        let mut row = [0.0; 8];
        columns.show(&fields, &[3.9, 0.56, 11.5], &mut row);
        assert_eq!(row[..3], [30.0, 14.0, 16.0]);
        assert!((row[3] - 160.0 / 3.0).abs() < 1e-12);
        assert_eq!(row[4..], [53.0, 2.0, 11.0, 7.0]);
    }

    #[test]
    #[should_panic(expected = "no column follows from itself")]
    fn a_column_that_follows_from_itself_is_refused() {
        let rest = |of: &str, without: &str| Shown::Rest { of: of.to_owned(), without: without.to_owned() };
        Columns::new(&[column("a", rest("b", "b")), column("b", rest("a", "a"))], &fields(&["x"]));
    }

    #[test]
    #[should_panic(expected = "there is no nothing")]
    fn a_column_names_what_there_is() {
        Columns::new(&[column("a", Shown::Field { field: "nothing".to_owned(), factor: 1.0 })], &fields(&["x"]));
    }
}
