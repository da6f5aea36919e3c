"""SDF files, read and written."""
