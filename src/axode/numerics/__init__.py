"""Numbers without a model: rotations, rank and null space, Newton's method."""
