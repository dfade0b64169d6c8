"""Other tools' files: YCSB, cassandra-stress."""
