"""Families of polynomials: start sets, paths of roots, certificates."""
