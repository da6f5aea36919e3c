"""Sweep parameters, starts and inputs: a few numbers of very many runs."""
