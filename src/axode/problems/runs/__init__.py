"""Runs that are advanced together: their settings, buffers and logs of steps."""
