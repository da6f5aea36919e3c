"""Integration methods as programs of tapes."""
