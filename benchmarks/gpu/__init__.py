"""Kernels measured on a GPU machine that has only NumPy and CuPy."""
