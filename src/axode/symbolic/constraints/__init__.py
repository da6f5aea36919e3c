"""Constraint rows, loop closure, and the independent speeds that they leave."""
