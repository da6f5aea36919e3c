"""A class name stands for one thing in the whole package."""

import ast
from collections import defaultdict

from house.tree import nodes, relative, sources

# Names that two classes still share; remove an entry once one of them is renamed.
SHARED = {"Signal"}


def class_names() -> dict[str, list[str]]:
    """Where each class name is defined."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sources():
        for node in nodes(path.read_text()):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(f"{relative(path)}:{node.lineno}")
    return found


def test_class_names_are_unique():
    twice = {n: at for n, at in class_names().items() if len(at) > 1 and n not in SHARED}
    listed = [f"{name}: {', '.join(at)}" for name, at in twice.items()]
    assert not twice, "rename one of each to something more exact:\n  " + "\n  ".join(listed)


def test_exceptions_are_still_needed():
    found = class_names()
    for name in SHARED:
        assert len(found[name]) > 1, f"take {name} off SHARED in tests/house/test_class_names.py"
