"""TOML files, read and written, and files that add to others."""
