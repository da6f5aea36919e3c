"""Describe: bodies, joints, wheels and forces with names and units."""
