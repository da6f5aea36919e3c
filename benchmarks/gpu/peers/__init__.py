"""Other simulators, and JAX on Axode's own tapes, measured beside its kernels on the same GPU."""
