"""Every class of errors is raised by a test."""

import ast

from house.tree import PACKAGE, ROOT, nodes, parsed

HOUSE = ROOT / "tests" / "house"
TESTS = sorted(path for path in (ROOT / "tests").rglob("*.py") if path.parent != HOUSE)


def error_classes() -> list[str]:
    """Names of the public errors and warnings."""
    tree = parsed((PACKAGE / "errors.py").read_text())
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    return [node.name for node in classes if node.bases]


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


def test_every_class_of_errors_is_raised_in_a_test():
    classes = error_classes()
    assert {"InvalidArgument", "OmissionWarning"} <= set(classes)
    caught = set().union(*(caught_in(path.read_text(), classes) for path in TESTS))
    missing = [name for name in classes if name not in caught]
    assert not missing, f"no test expects {missing}: use pytest.raises or pytest.warns"


def test_expected_errors_are_read():
    source = "with pytest.raises((ax.errors.FileError, KeyError), match='InvalidArgument'): pass"
    assert caught_in(source, ["FileError", "InvalidArgument"]) == {"FileError"}
