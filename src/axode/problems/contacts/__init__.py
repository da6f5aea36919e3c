"""Contacts that stick, slip, lift and land: their modes, forces and impacts."""
