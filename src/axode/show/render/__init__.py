"""Still and moving pictures, drawn without a browser."""
