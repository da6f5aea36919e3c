"""Texts of errors in the package, and what of them the tests quote."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from house.tree import PACKAGE, nodes, parsed, relative, sources

GAP = "\0"  # what is filled in when the error is raised
EDGES = " '\",.:;()"  # around what is filled in
SHORTEST = 8  # characters; less is no text of an error's own
QUOTED = 10  # characters of a quotation, at least two words


@dataclass(frozen=True)
class Text:
    """An error or a warning that the package makes."""

    path: str
    line: int
    pieces: tuple[str, ...]  # between what is filled in


def constants(node: ast.AST) -> str:
    """Text of an expression, with gaps for what only a run knows."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(map(constants, parts))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return constants(left) + constants(right)
        case ast.IfExp(body=first, orelse=second):
            return constants(first) + GAP + constants(second)
    return GAP


def error_classes() -> list[str]:
    """Names of the public errors and warnings."""
    tree = parsed((PACKAGE / "errors.py").read_text())
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    return [node.name for node in classes if node.bases]


def texts_in(source: str, path: str, classes: list[str]) -> Iterator[Text]:
    """Errors and warnings made in one file that have a text of their own."""
    for node in nodes(source):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        if name not in (*classes, "Fault", "warn"):
            continue
        given = [constants(item) for item in (*node.args, *(k.value for k in node.keywords))]
        if name == "UnknownName" and len(given) > 1:
            given = [given[0], f"has no {given[1]}"]  # as the class itself words it
        text = GAP.join(given[:1] if name == "warn" else given)
        found = [piece.strip(EDGES) for piece in re.split(f"[{GAP}\n]", text)]
        pieces = tuple(piece for piece in found if len(piece) >= SHORTEST)
        if pieces:
            yield Text(path, node.lineno, pieces)


def quotations(paths: list[Path]) -> tuple[set[str], str]:
    """Parts of the strings in tests that may quote an error, and all strings at once."""
    strings = {
        re.sub(r"\\([^\w])", r"\1", node.value)
        for path in paths
        for node in nodes(path.read_text())
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    parts = {part.strip(EDGES) for text in strings for part in re.split(r"\.\*\??|\n|\|", text)}
    return {part for part in parts if len(part) >= QUOTED and " " in part}, "\n".join(strings)


def unquoted(texts: list[Text], quoted: set[str], everything: str) -> list[Text]:
    """Texts of which no test quotes a part."""
    pieces = "\n".join(piece for text in texts for piece in text.pieces)
    quoted = {quote for quote in quoted if quote in pieces}
    return [
        text
        for text in texts
        if not any(
            piece in everything or any(quote in piece for quote in quoted) for piece in text.pieces
        )
    ]


def package_texts() -> list[Text]:
    """Every text of an error in the package."""
    classes = error_classes()
    return [
        text
        for path in sources()
        if path.name != "errors.py"
        for text in texts_in(path.read_text(), relative(path), classes)
    ]


def caught_in(source: str, classes: list[str]) -> set[str]:
    """Errors that a file of tests expects with `pytest.raises` or `pytest.warns`."""
    found = set()
    for node in nodes(source):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("raises", "warns"):
            names = {
                getattr(part, "id", getattr(part, "attr", ""))
                for argument in node.args[:1]
                for part in ast.walk(argument)
            }
            found |= names & set(classes)
    return found
