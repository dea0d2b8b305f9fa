"""The refresh at startup: stop positions, frames after them, quarantine."""
