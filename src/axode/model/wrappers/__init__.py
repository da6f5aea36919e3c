"""Functions of models for libraries that differentiate: PyTorch and JAX."""
