"""Show: what a run leaves behind, by name and unit."""
