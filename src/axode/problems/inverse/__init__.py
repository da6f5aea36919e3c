"""Inverse: the forces that a motion needs."""
