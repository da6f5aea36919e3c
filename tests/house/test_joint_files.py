"""What is special about a joint or a wheel stands in its own file, not in ladders elsewhere."""

import ast
import re

from axode.mechanism.elements.joints import JOINTS
from axode.mechanism.elements.wheels import WHEELS
from house.tree import PACKAGE, nodes, relative, sources

KINDS = {kind.__name__ for kind in (*JOINTS.values(), *WHEELS.values())}
ALLOWED = {"oracle": "written a second time on purpose, without a look at the symbolic joints"}


def ladders(source: str) -> list[str]:
    """Lines that ask for the class of a joint or wheel."""
    if not re.search(rf"\b({'|'.join(KINDS)})\b", source):
        return []
    return [
        f"line {node.lineno}: {', '.join(sorted(named))}"
        for node in nodes(source)
        for asked in _asked(node)
        if (named := KINDS & _names(asked))
    ]


def _asked(node: ast.AST) -> list[ast.AST]:
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "issubclass"):
        return node.args[1:]
    if isinstance(node, ast.MatchClass):
        return [node.cls]
    if isinstance(node, ast.Compare):  # type(joint) is Revolute, type(joint).__name__ == "Skate"
        return [node]
    return []


def _names(node: ast.AST) -> set[str]:
    found = set()
    for part in ast.walk(node):
        texts = (getattr(part, name, None) for name in ("id", "attr", "value"))
        found |= {text for text in texts if isinstance(text, str)}
    return found


def test_no_code_asks_which_joint_or_wheel_it_has():
    faults = []
    for path in sources():
        folder = path.relative_to(PACKAGE).parts[0]
        if folder not in ALLOWED:
            faults += [f"{relative(path)}, {fault}" for fault in ladders(path.read_text())]
    remedy = "give the joint or wheel a method in symbolic/joints or symbolic/wheels, or its class "
    remedy += "in mechanism/elements an attribute"
    assert not faults, f"{remedy}:\n  " + "\n  ".join(faults)


def test_every_way_to_ask_is_seen():
    for source in (
        "isinstance(joint, Revolute)",
        "isinstance(joint, (Planar, joints.Floating))",
        "isinstance(joint, Planar | Floating)",
        "type(wheel) is Skate",
        'type(wheel).__name__ != "Skate"',
        "match joint:\n    case Screw():\n        pass",
    ):
        assert ladders(source), source
    assert not ladders("joint = Revolute('z')\nisinstance(joint, AbstractJoint)")
