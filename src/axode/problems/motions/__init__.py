"""Motions of arms and platforms: how they pass from one place to others, and how fast."""
