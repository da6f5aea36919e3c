"""Postures and speeds for wanted poses, directions and measures, by numbers."""
