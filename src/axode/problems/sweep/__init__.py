"""Sweep: a few numbers of very many runs."""
