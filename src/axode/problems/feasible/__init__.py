"""Feasible: whether the ground can give the forces of ideal rolling."""
