//! QuestDB's way in for much data: its line protocol over HTTP, beside PostgreSQL's protocol.

mod encoder;
mod http;
mod load;

pub use load::load;
