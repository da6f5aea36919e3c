"""Tapes: flat lists of scalar operations, and transformations of them."""
