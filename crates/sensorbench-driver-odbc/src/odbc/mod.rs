//! ODBC as far as it is used here: handles that free themselves, buffers that live as long as they are bound. All that is unsafe
//! is in this module; what it offers is safe.

mod api;
mod buffer;
mod connection;
mod diagnostics;
mod manager;
mod running;
mod statement;

pub use buffer::{Buffer, Cell, Form, Input, Moment};
pub use connection::{Connection, Fact};
pub use diagnostics::Diagnostics;
pub use manager::Manager;
pub use running::{Running, Watched};
pub use statement::{Described, Kind, Statement};

/// How text goes to a driver and comes back.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Text {
    /// As UTF-16, by the functions for wide characters: the one form that every driver for Unicode understands, whatever its
    /// locale.
    #[default]
    Wide,
    /// As UTF-8, by the functions for narrow characters: for drivers that know no other.
    Narrow,
}

/// The value of an attribute that is a number, as the standard wants it: in the place of a pointer.
fn number(value: usize) -> *mut std::ffi::c_void {
    std::ptr::without_provenance_mut(value)
}
