"""XML as a tree of elements that know their lines.

The standard library's tree drops line numbers, without which errors are hard to fix. Declarations
of entities are refused: robots need none, and a few lines of them can fill any memory.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from xml.parsers import expat

from axode.errors import FileError

MAX_BYTES = 16 << 20  # of a description, with all files that it includes
MAX_ELEMENTS = 50_000  # likewise; a robot of a thousand links has less than half of it
_DECLARATION = re.compile(r"<\?xml\s[^>]*\?>")


class Element:
    """A tag with its attributes, the line it stands in, and what is inside: elements and text."""

    __slots__ = ("attributes", "children", "line", "tag", "texts")

    def __init__(
        self, tag: str, attributes: dict[str, str], line: int, children: Sequence[Element] = ()
    ) -> None:
        self.tag, self.attributes, self.line = tag, attributes, line
        self.children = list(children)
        self.texts: list[str] = []

    @property
    def text(self) -> str:
        """The text right inside, without blanks at its ends."""
        return "".join(self.texts).strip()

    def all(self, tag: str) -> list[Element]:
        """The elements of this tag right inside."""
        return [child for child in self.children if child.tag == tag]

    def first(self, tag: str) -> Element | None:
        """The first of them, or None."""
        for child in self.children:
            if child.tag == tag:
                return child
        return None


def parse(text: str, source: str, remarks: list[tuple[int, str, str]]) -> Element:
    """The root element of a text.

    Args:
        text: XML, perhaps with its declaration further down.
        source: What messages call it.
        remarks: Gets line, message and remedy of what is no XML and could be read all the same.

    Raises:
        FileError: if it is not XML, with the line, declares entities, or has too many elements.
    """
    text = _without_declaration(text, remarks)
    parser = expat.ParserCreate()
    top = Element("", {}, 1)
    open_elements = [top]
    count = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        if count > MAX_ELEMENTS:  # each takes a hundred times the memory of its text
            raise FileError(f"{source}: more than {MAX_ELEMENTS} elements, as in no robot.")
        element = Element(tag, attributes, parser.CurrentLineNumber)
        open_elements[-1].children.append(element)
        open_elements.append(element)

    def end(tag: str) -> None:
        open_elements.pop()

    def keep(text: str) -> None:
        texts = open_elements[-1].texts
        if texts or not text.isspace():  # blanks between comments separate words
            texts.append(text)

    def refuse(name: str, system: str | None, public: str | None, declares: bool) -> None:
        if not declares:  # expat reads no other file
            remarks.append((parser.CurrentLineNumber, "has a document type declaration", "ignored"))
            return
        raise FileError(
            f"{source}, line {parser.CurrentLineNumber}: a document type declaration, which is not "
            "read.\n  Remove the lines of <!DOCTYPE ...>; the file needs none."
        )

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = keep
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        raise FileError(_syntax(source, text, error)) from None
    return top.children[0]


def decode(data: bytes, remarks: list[tuple[int, str, str]]) -> str | None:
    """Decode an XML file by the encoding that it begins with or declares, UTF-8 unless given.

    Bytes that are not of that encoding, as in comments written elsewhere, are replaced.

    Returns:
        The text, or None if this is no XML.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text = data.decode("utf-16", errors="replace")
        return text if text.lstrip().startswith("<") else None
    data = data.removeprefix(codecs.BOM_UTF8)
    if data.endswith(b"\0"):
        data = data.rstrip(b"\0")
        remarks.append((data.count(b"\n") + 1, "zero bytes end the file", "ignored"))
    if not data.lstrip().startswith(b"<") or b"\0" in data:
        return None
    declared = re.match(rb"\s*<\?xml\s[^>]*?encoding\s*=\s*[\"']([\w.-]+)", data)
    try:
        text = data.decode(declared[1].decode() if declared else "utf-8")
        text.encode()  # some encodings give halves of characters
        return text
    except (UnicodeError, LookupError):
        pass
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"the byte 0x{data[error.start]:02x} is not UTF-8"
        remarks.append((line, message, "replaced, and others after it"))
        return data.decode(errors="replace")


def _without_declaration(text: str, remarks: list[tuple[int, str, str]]) -> str:
    """Remove an XML declaration that stands behind something else."""
    found = _DECLARATION.search(text)
    if found is None or found.start() == 0:
        return text
    line = text.count("\n", 0, found.start()) + 1
    remarks.append((line, "the XML declaration does not stand at the very beginning", "ignored"))
    blank = "\n" * found[0].count("\n")
    return text[: found.start()] + blank + text[found.end() :]


def _syntax(source: str, text: str, error: expat.ExpatError) -> str:
    """What is wrong, where, and the line itself."""
    rows = text.split("\n")
    shown = rows[error.lineno - 1].strip() if error.lineno <= len(rows) else ""
    what = expat.ErrorString(error.code) or "no XML"
    return f"{source}, line {error.lineno}: not valid XML, {what}.\n  {shown[:200]}".rstrip()
