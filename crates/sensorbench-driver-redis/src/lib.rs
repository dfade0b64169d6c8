//! Redis and Redis Cluster.
