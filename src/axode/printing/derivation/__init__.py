"""Worked derivations: the equations of a mechanism step by step, with matrices and numbers."""
