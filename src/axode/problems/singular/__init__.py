"""Configurations at which a choice of rows and speeds becomes singular."""
