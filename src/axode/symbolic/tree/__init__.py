"""The spanning tree in motion: frames, kinematics, inertia, recursions, forces."""
