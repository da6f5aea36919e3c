"""Rolling contacts."""
