"""What `aerotape bench` measures; `tests/bench` measures the same against the Java archive."""
