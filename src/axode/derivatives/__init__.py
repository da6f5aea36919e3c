"""Derivatives of a mechanism's functions: lifted equations, their tables, adjoints of steps."""
