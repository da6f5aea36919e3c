"""What a mechanism is made of: bodies, joints, wheels, couplings, forces and measures."""
