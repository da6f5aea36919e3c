"""Audit runs by their balance of energy, sampled a few times inside the loop of their steps.

What a run's energy is, it must have had at its start or have been given since. The difference is an
error of the steps; it is compared with the largest energies that the run has shown. Samples are
taken at the start, after 2, 8, 32 ... steps and at the end, so that they cost next to nothing and
hang on nothing but the run.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import reduce

import numpy as np
import numpy.typing as npt

from axode.codegen.lowering.program import Evaluate, Operation, Program, While
from axode.codegen.tape.formulas import Formula, Vector, formula_tape
from axode.codegen.tape.tape import Tape
from axode.errors import RunsInaccurateWarning, level_outside
from axode.problems.steps.rates import Dynamics
from axode.problems.steps.step_acceptance import FINISHED, INACCURATE, RUNNING

TOLERANCE = 1e-5  # of the largest energies that a run has shown
LOOSE = 1e3  # times the relative tolerance of its steps, where that is more
LOOSEST = 1e-2
REST = 1e-10  # of the kinetic energy at unit speeds: less is no motion
ROUNDINGS = 1e3  # of the sum of energies, that many steps may make
# samples, energy and potential at the start, largest error, largest energy, what does not count
LEDGER = 6


def energy_tolerance(rtol: float | None) -> float:
    """Return the error of the balance that passes, relative to the largest energy of a run.

    Args:
        rtol: Relative tolerance of adaptive steps; None for fixed ones.
    """
    return max(TOLERANCE, min(LOOSE * (rtol or 0.0), LOOSEST))


def energy_rounding(precision: str) -> float:
    """Return the error that rounding may make, relative to the sum of energies."""
    return ROUNDINGS * float(np.finfo(precision).eps)


def audited(program: Program, d: Dynamics, energy: Tape) -> Program:
    """Make steps keep a ledger of their energy, and mark runs whose balance is off.

    Args:
        program: Steps, one per turn of its counted loop.
        d: Tapes of the model.
        energy: q, nu (t, p) to kinetic and potential energy.
    """
    steps = "step" if "step" in program.state else "steps"
    operations: list[Operation] = []
    for operation in program.operations:
        if isinstance(operation, While) and operation.counted:
            body = (_sample(d, energy, steps), *operation.body, _is_due(steps))
            operations += [_is_due(steps), replace(operation, body=body)]
        else:
            operations.append(operation)
    operations += [_end(), _sample(d, energy, steps), _judge()]
    return replace(
        program,
        state=program.state | {"audit": LEDGER, "audit_next": 1, "inaccuracy": 1},
        given=program.given | {"energy_tolerance": 1, "energy_rounding": 1},
        operations=tuple(operations),
    )


def _sample(d: Dynamics, energy: Tape, steps: str) -> While:
    """Enter the energies of runs whose sample is due; first those at unit speeds, as a measure."""

    def speeds(nu: Vector, audit: Vector) -> dict[str, Vector]:
        unit = audit[0].equals(0.0)
        return {"nu": [unit.then(1.0, x) for x in nu]}

    def enter(**v: Vector) -> dict[str, Vector]:
        samples, start, potential, error, largest, floor = v["audit"]
        (kinetic, height), (supplied, lost) = v["energy"], v["w"]
        unit, first, due = samples.equals(0.0), samples.equals(1.0), v["due"][0]
        total = kinetic + height
        start, potential = first.then(total, start), first.then(height, potential)
        seen = (kinetic, height - potential, supplied, lost)
        rounding = v["rounding"][0] * (abs(kinetic) + abs(height))
        entered = [
            samples + 1.0,
            start,
            potential,
            error.most(abs(total - start - supplied + lost)),
            reduce(Formula.most, map(abs, seen), largest),
            floor.most(rounding),
        ]
        unmoved = [samples + 1.0, start, potential, error, largest, REST * kinetic]
        made = [unit.then(a, b) for a, b in zip(unmoved, entered, strict=True)]
        following = (due & ~unit).then((4.0 * v["steps"][0]).most(2.0), v["next"][0])
        return {
            "audit": [due.then(a, b) for a, b in zip(made, v["audit"], strict=True)],
            "next": [following],
            "due": [due & unit],
        }

    sizes = {"due": 1, "energy": 2, "w": 2, "audit": LEDGER, "rounding": 1, "steps": 1, "next": 1}
    unit = formula_tape("audit_speeds", {"nu": d.n_nu, "audit": LEDGER}, speeds)
    given = ("audit_due", "audit_energy", "w", "audit", "energy_rounding", steps, "audit_next")
    return While(
        "audit_due",
        (
            Evaluate(unit, ("nu", "audit", "audit_nu")),
            d.evaluate(energy, {"nu": "audit_nu"}, "audit_energy"),
            Evaluate(
                formula_tape("audit", sizes, enter), (*given, "audit", "audit_next", "audit_due")
            ),
        ),
    )


def _is_due(steps: str) -> Evaluate:
    """Sample runs that go on before the first step and after 2, 8, 32 ... of them."""
    tape = formula_tape(
        "audit_is_due",
        {"active": 1, "steps": 1, "next": 1},
        lambda active, steps, next: {"due": [active[0] & (steps[0] >= next[0])]},
    )
    return Evaluate(tape, ("active", steps, "audit_next", "audit_due"))


def _end() -> Evaluate:
    """Sample runs that have stopped once more."""
    tape = formula_tape(
        "audit_ends",
        {"status": 1, "audit": LEDGER},
        lambda status, audit: {"due": [~status[0].equals(float(RUNNING)) & (audit[0] > 1.0)]},
    )
    return Evaluate(tape, ("status", "audit", "audit_due"))


def _judge() -> Evaluate:
    """Mark runs that have ended with an error beyond the tolerance, and keep its relative size."""

    def judge(status: Vector, audit: Vector, tolerance: Vector) -> dict[str, Vector]:
        error, largest, floor = audit[3:]
        passes = error <= tolerance[0] * largest + floor
        ended = status[0].equals(float(FINISHED)) & ~passes
        return {
            "status": [ended.then(float(INACCURATE), status[0])],
            "inaccuracy": [passes.then(0.0, error / largest.most(1e-30))],
        }

    sizes = {"status": 1, "audit": LEDGER, "tolerance": 1}
    given = ("status", "audit", "energy_tolerance", "status", "inaccuracy")
    return Evaluate(formula_tape("audit_verdict", sizes, judge), given)


def warn_of_inaccuracy(errors: npt.NDArray[np.float64]) -> None:
    """Warn of runs whose energy is off: errors relative to the largest energy, zero if they pass.

    Args:
        errors: One per run.
    """
    warn_of_inaccurate(int(np.count_nonzero(errors)), errors.size, errors.max(initial=0.0))


def warn_of_inaccurate(inaccurate: int, runs: int, largest: float) -> None:
    """Warn if some of the runs are inaccurate; `largest` is the worst error among them."""
    if inaccurate:
        which = "the run is" if runs == 1 else f"{inaccurate} of {runs} runs are"
        warnings.warn(
            f"{which} inaccurate: the balance of energy is off by up to {largest:.0e} of the "
            "largest energy. Numbers are kept and do not count as finished.\n"
            "  Remedy: a shorter step, or adaptive steps with smaller rtol and atol",
            RunsInaccurateWarning,
            stacklevel=level_outside(),
        )
