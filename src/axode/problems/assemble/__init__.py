"""Assemble: configurations that close the loops, speeds that keep them closed."""
