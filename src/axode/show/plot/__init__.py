"""Plots of trajectories over time and seen from above."""
