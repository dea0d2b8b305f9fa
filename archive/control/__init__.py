"""Control sessions with clients: what they ask, who may, and what they are answered."""
