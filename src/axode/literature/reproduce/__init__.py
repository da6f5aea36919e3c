"""Results of the sources, computed again from their data and compared with their numbers.

`reproduce("quasimoro-straight")` writes a table, a figure in the source's layout and a verdict;
`axode reproduce --all` does so for everything, with a page over it.
"""

from axode.literature.reproduce.item import SOURCES, Check, Verdict, catalogue
from axode.literature.reproduce.making import Reproduction, Reproductions, reproduce

__all__ = ["SOURCES", "Check", "Reproduction", "Reproductions", "Verdict", "catalogue", "reproduce"]
