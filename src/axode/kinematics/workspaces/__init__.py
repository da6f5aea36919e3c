"""Closed-form inverses of legs, and the poses that a robot reaches."""
