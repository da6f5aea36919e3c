"""Read files within bounds and check them before use; write files whole or not at all."""
