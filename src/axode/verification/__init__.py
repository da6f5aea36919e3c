"""Acceptance cases of the sources, run through the gallery."""
