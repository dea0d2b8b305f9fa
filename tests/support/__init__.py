"""What the tests stand on: the Java archive and client, and messages both languages can make."""
