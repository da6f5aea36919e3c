"""Paths for wheeled robots."""
