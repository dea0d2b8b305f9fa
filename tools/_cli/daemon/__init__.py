"""What the commands that run until they are stopped share."""
