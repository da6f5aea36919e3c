"""Files of other people: read within bounds, written whole or not at all, checked before use."""
