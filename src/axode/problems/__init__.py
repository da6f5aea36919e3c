"""Solve: one folder per verb."""
