"""Actions and stores for the tests of entities."""
