"""What is known of a gallery mechanism, and the checks that every one has to pass."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import axode as ax
from axode.gallery import NAMES, build
from axode.symbolic.equations import Equations
from laws.cases import gallery_case

RIVALS = ("complement", "multipliers", "lagrange")
AGREE = 1e-9  # relative, between formulations
ENERGY = 1e-8  # relative, lost or won in ten seconds
STATES = 3


@dataclass(frozen=True)
class Known:
    """What a mechanism is, and a motion without friction and motors."""

    mobility: int
    rows: int
    rank: int
    loops: int
    configuration: int
    reachable: int
    actuation: str
    motors: int
    start: dict[str, float]
    name: str = ""  # in the gallery, where it is not the entry's own
    options: dict[str, Any] = field(default_factory=dict)
    near: dict[str, float] = field(default_factory=dict)  # centre of the random states
    spread: float = 0.3

    def mechanism(self, label: str) -> ax.Mechanism:
        """Built by the registry."""
        return build(self.name or label, **self.options)


_DERIVED: dict[str, ax.Equations] = {}


def derived(label: str, known: Known) -> ax.Equations:
    """Return the equations of a mechanism, derived once for all checks."""
    if not known.options:
        return gallery_case(known.name or label).equations
    if label not in _DERIVED:
        _DERIVED[label] = known.mechanism(label).derive()
    return _DERIVED[label]


def check_description(label: str, known: Known) -> None:
    """It stands in the registry, and a picture of it shows every body."""
    mechanism = known.mechanism(label)
    assert NAMES[mechanism.name] and mechanism.name == (known.name or label)
    assert all(body.shape is not None for body in mechanism.bodies)


def check_mobility(label: str, known: Known) -> None:
    """The report tells what is known."""
    report = derived(label, known).mobility
    assert (report.mobility, report.rows, report.rank, report.loops) == (
        known.mobility,
        known.rows,
        known.rank,
        known.loops,
    )
    assert len(report.dropped) == known.rows - known.rank
    assert (report.configuration_dof, report.reachable) == (known.configuration, known.reachable)
    assert (report.actuation, report.motors) == (known.actuation, known.motors)
    assert not report.conflicts


def check_formulations(label: str, known: Known) -> None:
    """Four derivations give the same accelerations at random states."""
    equations = derived(label, known)
    model = equations.compile("interpreter")
    rivals = {
        name: Equations(equations.system, name, equations.self_check).compile("interpreter")
        for name in RIVALS
    }
    centre = ax.assemble(model, known.near or None).q
    rng = np.random.default_rng(11)
    for _ in range(STATES):
        q = ax.assemble(model, centre + rng.normal(0.0, known.spread, centre.size), attempts=20).q
        assert np.abs(q - centre).max() > 1e-3
        nu, u = rng.normal(size=len(model.independent)), rng.normal(size=len(model.inputs))
        wanted = model.forward_dynamics(q, nu, u)
        size = max(float(np.abs(wanted).max()), 1e-3)
        for name, rival in rivals.items():
            worst = np.abs(rival.forward_dynamics(q, nu, u) - wanted).max() / size
            assert worst <= AGREE, f"{name} differs by {worst:.2g} of {size:.3g}"


def check_energy(label: str, known: Known) -> None:
    """Ten seconds without friction and motors cost nothing."""
    model = derived(label, known).compile()
    run = ax.simulate(model, 10.0, start=known.start, rtol=1e-11, atol=1e-12, progress=False)
    assert run.status == "finished" and abs(run.ended - 10.0) < 1e-9
    assert max(np.ptp(run[name]) for name in model.coordinates) > 0.1, "it hardly moved"
    assert run.energy_error < ENERGY


CHECKS = (check_description, check_mobility, check_formulations, check_energy)
LONG = (check_formulations, check_energy)


def each_check(labels: Iterable[str], long_runs: Collection[str]) -> pytest.MarkDecorator:
    """Every check of every mechanism; the long ones of `long_runs` for `make soak` only."""
    return pytest.mark.parametrize(
        ("label", "check"),
        [
            pytest.param(
                label,
                check,
                marks=[pytest.mark.soak] if check in LONG and label in long_runs else [],
                id=f"{label}-{check.__name__.removeprefix('check_')}",
            )
            for label in labels
            for check in CHECKS
        ],
    )
