"""Numbers, parameters, vectors and rotations of a description."""
