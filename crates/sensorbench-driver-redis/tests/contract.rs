//! Redis and Redis Cluster keeps the driver contract.
