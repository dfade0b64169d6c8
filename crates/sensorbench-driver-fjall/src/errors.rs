//! What the library's errors mean.

use sensorbench_driver::DriverError;

/// What fjall's errors say is the text of Rust's debugger; only what the operating system says is for people.
pub fn fjall_error(error: fjall::Error) -> DriverError {
    let mut causes = std::iter::successors(Some(&error as &dyn std::error::Error), |cause| cause.source());
    if let Some(system) = causes.find_map(|cause| cause.downcast_ref::<std::io::Error>()) {
        return DriverError::Statement(system.to_string());
    }
    let said = match error {
        fjall::Error::Locked => "another process, or another target of this one, has it open",
        fjall::Error::Poisoned => "a write failed before, and it takes no more of them until it is opened again",
        fjall::Error::KeyspaceDeleted => "the table was removed meanwhile",
        _ => "its files are damaged, or of another version of fjall; load it again with --replace",
    };
    DriverError::Statement(said.to_owned())
}
