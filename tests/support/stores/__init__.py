"""PostgreSQL and Cassandra servers for the tests of the entity stores."""
