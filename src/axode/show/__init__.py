"""Show: pictures and moving scenes of mechanisms and of what they did."""
