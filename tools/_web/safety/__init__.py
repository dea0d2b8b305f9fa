"""Who may ask the web service, and by which name."""
