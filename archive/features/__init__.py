"""What this archive adds to Aeron's: each feature plugs in by `archive.feature`."""
