"""What drives a run: inputs, laws, formulas and events, traced once into tapes."""
