"""Simulate the motion from a start, under inputs."""
