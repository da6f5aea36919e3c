"""Compile: SX functions to tapes, tapes to machine code and C."""
