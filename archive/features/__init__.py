"""The features that this archive adds to Aeron's; each plugs in by `archive.control.feature`."""
