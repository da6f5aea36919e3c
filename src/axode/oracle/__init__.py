"""The equations of motion once more, by other means: what the derived ones are checked against.

Newton's and Euler's laws of every body, in world axes and in the frames of the description, with
nothing of `axode.symbolic`. Numbers only: parameters have values, derivatives are complex steps.
"""
