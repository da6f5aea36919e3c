"""XML as a tree of elements that know their lines.

The standard library's tree forgets lines, and an error without one is hard to mend. Declarations of
entities are refused: robots need none, and a few lines of them can fill any memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NoReturn
from xml.parsers import expat

from axode.errors import FileError


@dataclass(frozen=True)
class Element:
    """A tag with its attributes, the line it stands in, and the elements inside it."""

    tag: str
    attributes: dict[str, str]
    line: int
    children: list[Element] = field(default_factory=list)

    def all(self, tag: str) -> Iterator[Element]:
        """The elements of this tag right inside."""
        return (child for child in self.children if child.tag == tag)

    def first(self, tag: str) -> Element | None:
        """The first of them, or None."""
        return next(self.all(tag), None)


def parse(text: str, source: str) -> Element:
    """The root element of a text; what stands between tags is left out.

    Raises:
        FileError: if it is not XML, with the line, or declares entities.
    """
    parser = expat.ParserCreate()
    top = Element("", {}, 1)
    open_elements = [top]

    def start(tag: str, attributes: dict[str, str]) -> None:
        element = Element(tag, attributes, parser.CurrentLineNumber)
        open_elements[-1].children.append(element)
        open_elements.append(element)

    def end(tag: str) -> None:
        open_elements.pop()

    def refuse(*declared: object) -> NoReturn:
        raise FileError(
            f"{source}, line {parser.CurrentLineNumber}: a document type declaration, which is not "
            "read.\n  Remove the lines of <!DOCTYPE ...>; a URDF file needs none."
        )

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        raise FileError(_syntax(source, text, error)) from None
    return top.children[0]


def _syntax(source: str, text: str, error: expat.ExpatError) -> str:
    """What is wrong, where, and the line itself."""
    rows = text.split("\n")
    shown = rows[error.lineno - 1].strip() if error.lineno <= len(rows) else ""
    what = expat.ErrorString(error.code) or "no XML"
    return f"{source}, line {error.lineno}: not valid XML, {what}.\n  {shown[:200]}".rstrip()
