"""Equations for readers: LaTeX, MathML, plain text and SymPy."""
