"""Exported C on processors that are emulated."""
