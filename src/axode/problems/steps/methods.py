"""The methods of integration by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from axode.codegen.tape.program import Program
from axode.problems.steps.explicit import adaptive_explicit_program, fixed_step_program
from axode.problems.steps.moreau import moreau_program
from axode.problems.steps.radau import radau9_program
from axode.problems.steps.rosenbrock import rodas5p_program
from axode.problems.steps.tableaus import DOP853, DOPRI5, RK4

AUTOMATIC, EXPLICIT, IMPLICIT = "auto", "dopri5", "radau9"  # the first one chooses
EXPLICIT_FINE = "dop853"  # for small tolerances
METHODS: dict[str, Callable[..., Program]] = {
    "rk4": partial(fixed_step_program, RK4),
    "dopri5": partial(adaptive_explicit_program, DOPRI5),
    "dop853": partial(adaptive_explicit_program, DOP853),
    "rodas5p": rodas5p_program,
    "radau9": radau9_program,
}
STEPS = "steps"  # through contacts that slip and lift
PROGRAMS = METHODS | {STEPS: moreau_program}
EQUAL_STEPS = ("rk4", STEPS)  # methods whose steps have one length
