"""Results: trajectories, events and sweeps, with names and units."""
