"""Arrows point one way: describe <- derive <- compile <- solve <- show."""

from importlib import import_module

import pytest

from axode.stages import MODULES
from house.arrows import ORDER, folder, imports, wrong_arrows
from house.tree import PACKAGE, relative, sources


def test_every_import_follows_the_pipeline():
    faults = []
    for path in sources():
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        module = ".".join(parts[:-1] if is_package else parts)
        wrong = wrong_arrows(path.read_text(), module, is_package=is_package)
        faults += [f"{relative(path)}, {fault}" for fault in wrong]
    assert sources(), "no sources found under src/axode"
    assert not faults, "imports against the house rules:\n  " + "\n  ".join(faults)


@pytest.mark.parametrize(("name", "module"), MODULES.items())
def test_later_stages_are_there(name, module):
    assert callable(getattr(import_module(f"axode.{module}"), name))


def test_every_folder_has_a_place():
    folders = {
        folder(".".join(("axode", *path.parent.relative_to(PACKAGE).parts)), is_package=True)
        for path in sources()
        if path.parent != PACKAGE and any(path.parent.glob("[a-z]*.py"))
    }
    assert folders - {"gallery"} <= set(ORDER)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("axode.mechanism.elements.bodies", "import casadi as ca"),
        ("axode.mechanism.elements.bodies", "def f():\n    import casadi"),
        ("axode.mechanism.elements.bodies", "from llvmlite import ir"),
        ("axode.mechanism.elements.bodies", "from ...symbolic import algebra"),
        ("axode.mechanism.elements.bodies", "from ... import symbolic"),
        ("axode.mechanism.elements.bodies", "from axode import simulate"),
        (
            "axode.mechanism.elements.bodies",
            "try:\n    from axode.symbolic import x\nexcept E:\n    pass",
        ),
        ("axode.mechanism.elements.bodies", "def f():\n    import axode.model.model"),
        ("axode.symbolic.equations", "from axode.model.model import Model"),
        ("axode.symbolic.formulations.legs", "from ...codegen import tape"),
        ("axode.problems.steps.compiled", "from axode.exports.export import export_model"),
        ("axode.mechanism.mechanism", "def derive():\n    from axode.symbolic import equations"),
        ("axode.symbolic.equations", "def compile():\n    from ..model.model import Model"),
        ("axode.symbolic.tree.kinematics", "from axode.symbolic.constraints.loops import Closure"),
        ("axode.model.model", "def f():\n    from axode.results import trajectory"),
        ("axode.results.trajectory", "from axode.problems.simulate.simulate import simulate"),
        ("axode.problems.simulate.simulate", "from axode.gallery import balancer"),
        ("axode.results.plot", "import matplotlib.pyplot as plt"),
        ("axode.gallery.balancer", "from axode.symbolic import spatial"),
        ("axode.helpers", "from axode.errors import AxodeError"),
        ("axode.errors", "from axode.mechanism.elements.bodies import Body"),
    ],
)
def test_a_wrong_arrow_is_seen(module, source):
    assert wrong_arrows(source, module)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("axode.mechanism.mechanism", "if TYPE_CHECKING:\n    from ..symbolic import equations"),
        ("axode.mechanism.mechanism", "from . import bodies\nfrom ..errors import AxodeError"),
        ("axode.symbolic.algebra.spatial", "import casadi as ca"),
        ("axode.codegen.targets.cpu", "from llvmlite import ir\nfrom .tape import Tape"),
        ("axode.exports.export", "from axode.problems.steps.compiled import rollout_program"),
        (
            "axode.problems.simulate.simulate",
            "def f():\n    from ..results.trajectory import Trajectory",
        ),
        ("axode.results.plot", "def plot():\n    import matplotlib.pyplot as plt"),
        (
            "axode.gallery.balancer",
            "import axode as ax\nfrom axode.mechanism.elements.bodies import Body",
        ),
        ("axode.cli", "from axode.gallery import balancer\nfrom axode.problems import simulate"),
        ("axode", "from axode.mechanism.mechanism import Mechanism"),
    ],
)
def test_a_right_arrow_is_let_through(module, source):
    assert wrong_arrows(source, module) == []


def test_relative_imports_are_made_absolute():
    found = imports("from . import a\nfrom .b import c", "axode.symbolic", is_package=True)
    assert [item.module for item in found] == ["axode.symbolic.a", "axode.symbolic.b.c"]
    found = imports("from .. import errors\nfrom ..x.y import z", "axode.symbolic.equations")
    assert [item.module for item in found] == ["axode.errors", "axode.x.y.z"]
