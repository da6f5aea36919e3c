"""Linearize: linear models near a state, and feedback from them."""
