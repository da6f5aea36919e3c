"""A file fits in a reader's head, a function on a screen."""

import ast

from house.measure import functions
from house.tree import ROOT, nodes, relative, sources

FILES = 540
LONG_PARAMETER_LISTS = 40  # public verbs and methods, most of them
LINES_PER_FILE = 800
LINES_PER_FUNCTION = 90  # of its body: signature and docstring are as long as they need to be

# Tables of numbers, not logic: path from the project root, and why.
DATA_TABLES: dict[str, str] = {}


def long_functions(source: str, limit: int = LINES_PER_FUNCTION) -> list[str]:
    """Functions longer than the limit, as "name, line n: m lines"."""
    found = []
    for node in nodes(source):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            size = node.end_lineno - node.body[0].lineno + 1 - _docstring_lines(node)
            if size > limit:
                found.append(f"{node.name}, line {node.lineno}: {size} lines")
    return found


def _docstring_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    if ast.get_docstring(node, clean=False) is None:
        return 0
    first = node.body[0]
    return first.end_lineno - first.lineno + 1


def test_files_are_short():
    sizes = {relative(path): len(path.read_text().splitlines()) for path in sources()}
    assert sizes, "no sources found under src/axode"
    over = {name: n for name, n in sizes.items() if n > LINES_PER_FILE and name not in DATA_TABLES}
    assert not over, f"files over {LINES_PER_FILE} lines, split them by what they hold: {over}"


def test_functions_are_short():
    faults = [
        f"{relative(path)}, {fault}"
        for path in sources()
        if relative(path) not in DATA_TABLES
        for fault in long_functions(path.read_text())
    ]
    assert not faults, f"functions over {LINES_PER_FUNCTION} lines, split them:\n  " + "\n  ".join(
        faults
    )


def test_exemptions_are_still_needed():
    for name, reason in DATA_TABLES.items():
        text = (ROOT / name).read_text()
        needed = len(text.splitlines()) > LINES_PER_FILE or long_functions(text)
        assert needed and reason, f"take {name} off DATA_TABLES in tests/house/test_sizes.py"


def test_a_long_function_is_seen():
    body = "    x = 1\n" * (LINES_PER_FUNCTION + 1)
    assert long_functions(f"def f():\n{body}") == ["f, line 1: 91 lines"]
    assert long_functions(f"class A:\n    async def g(self):\n{body.replace('    ', ' ' * 8)}")
    arguments = ", ".join("abcdefgh").replace(" ", "\n" * 10)
    assert long_functions(f"def f({arguments}):\n    return a\n") == []
    documented = 'def f():\n    """' + "\n" * 110 + '    """\n    return 1\n'
    assert long_functions(documented) == []


def test_files_are_few():
    count = len(sources())
    assert count <= FILES, "let a small file join the neighbour whose idea it shares"


def test_parameter_lists_are_short():
    count = functions()["functions with 8 or more parameters"]
    assert count <= LONG_PARAMETER_LISTS, "pass what belongs together as one frozen description"
