"""Models: named functions of numbers, where they come from, and their files."""
