"""What pages share: the mechanism in three dimensions, curves, and their data."""
