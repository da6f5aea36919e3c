"""Meshes in files: found, read within limits, simplified and made ready for pictures."""
