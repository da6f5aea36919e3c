"""Derive: the equations of motion of a mechanism as CasADi expressions."""
