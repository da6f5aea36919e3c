"""Elementary functions as straight-line IR."""
