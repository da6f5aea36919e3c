"""Gradients of runs: costs, their derivatives in reverse, sensitivities."""
