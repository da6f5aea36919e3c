"""Jacobians of a robot, and what follows from them: singularities, dexterity, stiffness."""
