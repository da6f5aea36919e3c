"""Solve: one file, one verb."""
