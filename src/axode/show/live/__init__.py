"""Pages in which a mechanism is simulated."""
