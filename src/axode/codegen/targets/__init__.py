"""From IR to running code: CPU, GPU, C, and CasADi's interpreter."""
