//! PostgreSQL keeps the driver contract.
