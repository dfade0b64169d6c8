//! One operation that is several statements: one for each time bucket, each shard or each row of another answer (`for_each`),
//! a look before at what there is or for what is to be changed, one for each of several readings or one for all of them encoded,
//! and what is to be written elsewhere, too (`also`). Sessions are wrapped, so that drivers know nothing of it.

mod asynchronous;
mod blocking;
mod task;
#[cfg(test)]
mod tests;

pub(crate) use asynchronous::MultiStatement;
pub(crate) use blocking::BlockingMultiStatement;
