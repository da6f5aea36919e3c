"""Spatial vectors, small linear systems, rank and rounding."""
