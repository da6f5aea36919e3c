"""Mechanisms in files: TOML read and written, URDF read."""
