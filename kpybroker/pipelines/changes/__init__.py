"""Change data of a database, by Debezium, to tables that equal the database's at every checkpoint."""
