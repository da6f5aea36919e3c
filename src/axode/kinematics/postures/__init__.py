"""All postures of a robot: closure as polynomials, and coordinates from their roots."""
