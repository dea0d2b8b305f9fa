"""Archive directories and schemas with known content."""
