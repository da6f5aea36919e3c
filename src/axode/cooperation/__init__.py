"""Cooperation: arms that hold one load, and what they do to it and to each other."""
