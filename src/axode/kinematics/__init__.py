"""Kinematics of parallel and serial robots: postures, singularities, workspaces."""
