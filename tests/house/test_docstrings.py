"""The arguments that a docstring lists are those of the signature."""

import ast
import inspect
import re
from collections.abc import Iterator
from textwrap import dedent

import axode
from house.tree import nodes, relative, sources

SECTION = re.compile(r"^(Args|Keyword Args):\n((?: .*\n?|\n)*)", re.MULTILINE)
ENTRY = re.compile(r"(\*{0,2}\w+(?:, \*{0,2}\w+)*):")


def listed(docstring: str) -> dict[str, list[str]]:
    """Names in each section of arguments; a line that names nothing is given as it stands."""
    found: dict[str, list[str]] = {}
    for section, body in SECTION.findall(docstring):
        lines = dedent(body).strip().splitlines()
        entries = [ENTRY.match(line) or line for line in lines if line and line[0] != " "]
        found[section] = [
            name.lstrip("*")
            for entry in entries
            for name in (entry[1].split(", ") if isinstance(entry, re.Match) else [entry])
        ]
    return found


def faults(source: str) -> Iterator[str]:
    """Functions and classes whose docstrings list other arguments than they take."""
    for node in nodes(source):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        sections = listed(ast.get_docstring(node) or "")
        if "Args" not in sections:
            continue
        wanted, optional = _fields(node) if isinstance(node, ast.ClassDef) else _arguments(node)
        names = sections["Args"]
        missing = [name for name in wanted if name not in names]
        unknown = [name for name in names if name not in (*wanted, *optional)]
        if "Keyword Args" not in sections and not isinstance(node, ast.ClassDef):
            missing += [name for name in optional if name not in names]
        twice = sorted({name for name in names if names.count(name) > 1})
        for words, which in (("missing", missing), ("unknown", unknown), ("twice", twice)):
            if which:
                yield f"{node.name}, line {node.lineno}: {words}: {', '.join(which)}"


def _arguments(node: ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[list[str], list[str]]:
    """Arguments, and those that take any number of values."""
    given = node.args
    plain = [item.arg for item in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    plain = [name for name in plain if name not in ("self", "cls") and not name.startswith("_")]
    return plain, [item.arg for item in (given.vararg, given.kwarg) if item]


def _fields(node: ast.ClassDef) -> tuple[list[str], list[str]]:
    """Arguments of a class: those of `__init__`, or the fields of a dataclass that users give."""
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and item.name == "__init__":
            return _arguments(item)
    fields = {
        item.target.id: ast.unparse(item.value) if item.value else ""
        for item in node.body
        if isinstance(item, ast.AnnAssign)
        and isinstance(item.target, ast.Name)
        and not item.target.id.startswith("_")
        and "ClassVar" not in ast.unparse(item.annotation)
    }
    filled = [name for name, value in fields.items() if "default_factory" in value]  # by methods
    return [name for name in fields if name not in filled], filled


def test_listed_arguments_are_those_of_the_signature():
    found = [
        f"{relative(path)}, {fault}" for path in sources() for fault in faults(path.read_text())
    ]
    assert not found, "make the docstring and the signature agree:\n  " + "\n  ".join(found)


def test_public_functions_list_their_arguments():
    silent = [
        name
        for name in axode.__all__
        if inspect.isfunction(value := getattr(axode, name))
        and inspect.signature(value).parameters
        and "Args" not in listed(inspect.getdoc(value) or "")
    ]
    assert not silent, f"add `Args:` to the docstrings of {silent}"


def test_a_wrong_docstring_is_seen():
    text = '''
def f(a, b, *, c, **options):
    """Words.

    Args:
        a, b: Two, with
            more: words.
        d: Not there.
        options: Any.

    Returns:
        x: No argument.
    """
'''
    assert list(faults(text)) == ["f, line 2: missing: c", "f, line 2: unknown: d"]
    assert list(faults(text.replace("d: Not there.", "c, c: There."))) == ["f, line 2: twice: c"]
    assert list(faults(text.replace("        d: Not there.\n", "").replace(" *, c,", ""))) == []
    assert list(faults("def f(a):\n    '''Words, no list of arguments.'''")) == []
