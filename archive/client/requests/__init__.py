"""The requests of the control protocol, one module for each kind."""
