"""The methods of integration by name; few runs need more than the explicit ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from axode.codegen.tape.program import Program
from axode.problems.steps.explicit import adaptive_explicit_program, fixed_step_program
from axode.problems.steps.tableaus import DOP853, DOPRI5, RK4

if TYPE_CHECKING:
    from axode.problems.steps.adaptive import Gathering
    from axode.problems.steps.rates import Dynamics


def _rodas5p(d: Dynamics, gathering: Gathering | None = None) -> Program:
    from axode.problems.steps.rosenbrock import rodas5p_program

    return rodas5p_program(d, gathering)


def _radau9(d: Dynamics, gathering: Gathering | None = None) -> Program:
    from axode.problems.steps.radau import radau9_program

    return radau9_program(d, gathering)


def _moreau(d: Dynamics, gathering: Gathering | None = None) -> Program:
    from axode.problems.steps.moreau import moreau_program

    return moreau_program(d, gathering)


AUTOMATIC, EXPLICIT, IMPLICIT = "auto", "dopri5", "radau9"  # the first one chooses
EXPLICIT_FINE = "dop853"  # for small tolerances
METHODS: dict[str, Callable[..., Program]] = {
    "rk4": partial(fixed_step_program, RK4),
    "dopri5": partial(adaptive_explicit_program, DOPRI5),
    "dop853": partial(adaptive_explicit_program, DOP853),
    "rodas5p": _rodas5p,
    "radau9": _radau9,
}
STEPS = "steps"  # through contacts that slip and lift
PROGRAMS = METHODS | {STEPS: _moreau}
EQUAL_STEPS = ("rk4", STEPS)  # methods whose steps have one length
