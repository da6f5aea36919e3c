"""Names that begin with an underscore stay inside the file that defines them."""

import ast

from house.tree import nodes, relative, sources

# What another library offers no public way to do.
FOREIGN = {
    "src/axode/cli/interruption.py": {"_exit"},  # of os: end without waiting for anything
    "src/axode/mechanism/values/expressions.py": {"_implementation"},  # of a function of NumPy
    "src/axode/show/viewer/server.py": {"_thread_executor"},  # viser's threads, to be joined
}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def own_names(source: str) -> set[str]:
    """Names that a file defines: functions, classes, variables, fields."""
    found = set()
    for node in nodes(source):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
    return found


def intrusions(source: str) -> list[str]:
    """Uses of private names of other files, with their lines."""
    own, found = own_names(source), []
    for node in nodes(source):
        if isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names if is_private(alias.name)]
            found += [f"line {node.lineno}: imports {name}" for name in names]
        elif (
            isinstance(node, ast.Attribute)
            and is_private(node.attr)
            and node.attr not in own
            and not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"))
        ):
            found.append(f"line {node.lineno}: {ast.unparse(node)}")
    return found


def test_private_names_stay_in_their_file():
    faults = [
        f"{relative(path)}, {fault}"
        for path in sources()
        for fault in intrusions(path.read_text())
        if fault.rpartition(".")[2] not in FOREIGN.get(relative(path), ())
    ]
    assert not faults, "give these a public name:\n  " + "\n  ".join(faults)


def test_an_intrusion_would_be_seen():
    assert intrusions("a.b._c()\n") == ["line 1: a.b._c"]
    assert intrusions("from a import _b\n") == ["line 1: imports _b"]
    assert not intrusions("def _f(x):\n    return x._g\nclass A:\n    _g = 1\n")
    assert not intrusions("self._x\ncls._y\na.__len__\n")
