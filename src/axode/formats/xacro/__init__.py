"""Macros of xacro, expanded."""
