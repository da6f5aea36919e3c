"""Runs of contacts between events: modes that stay, and decisions where they change."""
