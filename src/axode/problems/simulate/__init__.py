"""Simulate: motions from a start, under inputs."""
