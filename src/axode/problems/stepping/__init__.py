"""Runs that a loop in Python advances step by step."""
