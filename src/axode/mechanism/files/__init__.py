"""Mechanisms in files: which format it is, TOML, meshes, wheels that a file may mean."""
