"""Commands that show the state of a media driver, an archive and this machine."""
