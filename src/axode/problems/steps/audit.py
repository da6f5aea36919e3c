"""Audit runs by their balance of energy, sampled a few times inside the loop of their steps.

The energy of a run is that at its start plus the energy supplied since. The difference is an
error of the steps; it is compared with the largest energies that the run has shown. Samples are
taken at the start, after 16, 64, 256 ... tries of a step and at the end, so that they cost next to
nothing and depend on the run alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, reduce

import numpy as np
import numpy.typing as npt

from axode.codegen.tape.formulas import Formula, Vector, formula_tape
from axode.codegen.tape.program import Evaluate, Operation, Program, While
from axode.codegen.tape.tape import Tape
from axode.errors import RunsInaccurateWarning, level_outside
from axode.numerics.tolerances import ENERGY_TOLERANCE, FAINT, NOTICEABLE
from axode.problems.steps.rates import Dynamics
from axode.problems.steps.step_acceptance import FINISHED, INACCURATE, RUNNING

LOOSE = 1e3  # times the relative tolerance of its steps, where that is more
LOOSEST = 1e-2
STEPS_TOLERANCE = NOTICEABLE  # of steps through contacts, whose errors are of first order
ROUNDINGS = 1e3  # of the sum of energies, that many steps may make
FIRST = 16.0  # tries before the first sample after the start
FIRST_STEP = "fresh"  # flag of runs whose first step is estimated
# tries before the next sample, energy and potential at the start, largest error, largest energy,
# what does not count
LEDGER = 6


def energy_tolerance(rtol: float | None) -> float:
    """Return the error of the balance that passes, relative to the largest energy of a run.

    Args:
        rtol: Relative tolerance of adaptive steps; None for fixed ones.
    """
    return max(ENERGY_TOLERANCE, min(LOOSE * (rtol or 0.0), LOOSEST))


@cache
def energy_rounding(precision: str) -> float:
    """Return the error that rounding may make, relative to the sum of energies."""
    return ROUNDINGS * float(np.finfo(precision).eps)


def audited(program: Program, d: Dynamics, energy: Tape) -> Program:
    """Make steps keep account of their energy, and mark runs whose balance is off.

    Args:
        program: Steps, one per turn of its counted loop.
        d: Tapes of the model.
        energy: q, nu (t, p) to kinetic and potential energy.
    """
    counts = tuple(name for name in ("step", "steps", "rejected") if name in program.state)
    operations: list[Operation] = []
    for operation in program.operations:
        if isinstance(operation, While) and operation.flag == FIRST_STEP:
            shared = _enter_start(d, energy, FIRST_STEP)  # with the rate at the same state
            operations.append(replace(operation, body=(*shared, *operation.body)))
        elif isinstance(operation, While) and operation.counted:
            body = (_sample(d, energy, counts), *operation.body, _is_due(counts))
            operations += [*_begin(d, energy), _is_due(counts), replace(operation, body=body)]
        else:
            operations.append(operation)
    operations += [_end(), _sample(d, energy, counts), *_judge(d, energy)]
    return replace(
        program,
        state=program.state | {"audit": LEDGER, "inaccuracy": 1},
        given=program.given | {"energy_tolerance": 1, "energy_rounding": 1},
        operations=tuple(operations),
    )


def _begin(d: Dynamics, energy: Tape) -> list[Operation]:
    """Enter the energies of runs that start with a given first step."""
    fresh = formula_tape(
        "audit_is_fresh",
        {"active": 1, "audit": LEDGER},
        lambda active, audit: {"fresh": [active[0] & audit[0].equals(0.0)]},
    )
    done = formula_tape("audit_has_begun", {"f": 1}, lambda f: {"fresh": [0.0 * f[0]]})
    flag = "audit_fresh"
    body = (*_enter_start(d, energy, flag), Evaluate(done, (flag, flag)))
    return [Evaluate(fresh, ("active", "audit", flag)), While(flag, body)]


def _enter_start(d: Dynamics, energy: Tape, flag: str) -> tuple[Evaluate, Evaluate]:
    """Enter the energies of runs that start, where a flag is up."""

    def enter(flag: Vector, energy: Vector, w: Vector, **v: Vector) -> dict[str, Vector]:
        (kinetic, height), (supplied, lost), audit = energy, w, v["audit"]
        new = flag[0] & audit[0].equals(0.0) & v["status"][0].equals(float(RUNNING))
        entered = [
            new.like(FIRST),
            kinetic + height - supplied + lost,
            height,
            new.like(0.0),
            reduce(Formula.most, map(abs, (kinetic, supplied, lost))),
            v["rounding"][0] * (abs(kinetic) + abs(height)),
        ]
        return {"audit": [new.then(a, b) for a, b in zip(entered, audit, strict=True)]}

    sizes = {"flag": 1, "energy": 2, "w": 2, "audit": LEDGER, "rounding": 1, "status": 1}
    given = (flag, "audit_energy", "w", "audit", "energy_rounding", "status", "audit")
    entered = Evaluate(formula_tape("audit_begins", sizes, enter), given)
    return d.evaluate(energy, {}, "audit_energy"), entered


def _sample(d: Dynamics, energy: Tape, counts: Sequence[str]) -> While:
    """Enter the energies of runs whose sample is due."""

    def enter(**v: Vector) -> dict[str, Vector]:
        _, start, potential, error, largest, floor = v["audit"]
        (kinetic, height), (supplied, lost), due = v["energy"], v["w"], v["due"][0]
        seen = (kinetic, height - potential, supplied, lost)
        tries = reduce(Formula.__add__, (v[name][0] for name in counts))
        entered = [
            (4.0 * tries).most(FIRST),
            start,
            potential,
            error.most(abs(kinetic + height - start - supplied + lost)),
            reduce(Formula.most, map(abs, seen), largest),
            floor.most(v["rounding"][0] * (abs(kinetic) + abs(height))),
        ]
        return {
            "audit": [due.then(a, b) for a, b in zip(entered, v["audit"], strict=True)],
            "due": [0.0 * due],
        }

    sizes = {"due": 1, "energy": 2, "w": 2, "audit": LEDGER, "rounding": 1}
    given = ("audit_due", "audit_energy", "w", "audit", "energy_rounding", *counts)
    tape = formula_tape("audit", sizes | dict.fromkeys(counts, 1), enter)
    return While(
        "audit_due",
        (d.evaluate(energy, {}, "audit_energy"), Evaluate(tape, (*given, "audit", "audit_due"))),
    )


def _is_due(counts: Sequence[str]) -> Evaluate:
    """Sample runs that go on after 16, 64, 256 ... tries of a step.

    Tries, and not steps, so that runs in neighbouring lanes are sampled at the same time.
    """

    def is_due(active: Vector, audit: Vector, **v: Vector) -> dict[str, Vector]:
        tries = reduce(Formula.__add__, (v[name][0] for name in counts))
        return {"due": [active[0] & (tries >= audit[0])]}

    sizes = {"active": 1, "audit": LEDGER} | dict.fromkeys(counts, 1)
    given = ("active", "audit", *counts, "audit_due")
    return Evaluate(formula_tape("audit_is_due", sizes, is_due), given)


def _end() -> Evaluate:
    """Sample runs that have stopped once more."""
    tape = formula_tape(
        "audit_ends",
        {"status": 1, "audit": LEDGER},
        lambda status, audit: {"due": [~status[0].equals(float(RUNNING)) & (audit[0] > 0.0)]},
    )
    return Evaluate(tape, ("status", "audit", "audit_due"))


def _judge(d: Dynamics, energy: Tape) -> list[Operation]:
    """Mark runs that have ended with an error beyond the tolerance, and keep its relative size.

    Energies at unit speeds, against which what hardly moves is measured, are computed where it
    matters.
    """

    def passes(audit: Vector, tolerance: Vector) -> Formula:
        error, largest, floor = audit[3:]
        return error <= tolerance[0] * largest + floor

    def doubt(status: Vector, audit: Vector, tolerance: Vector) -> dict[str, Vector]:
        stopped = ~status[0].equals(float(RUNNING))
        return {"doubt": [stopped & ~passes(audit, tolerance)]}

    def rest(doubt: Vector, audit: Vector, energy: Vector) -> dict[str, Vector]:
        *kept, floor = audit
        least = doubt[0].then(floor.most(FAINT * energy[0]), floor)
        return {"audit": [*kept, least], "doubt": [0.0 * doubt[0]]}

    def judge(status: Vector, audit: Vector, tolerance: Vector) -> dict[str, Vector]:
        error, largest, _ = audit[3:]
        good = passes(audit, tolerance)
        ended = status[0].equals(float(FINISHED)) & ~good
        return {
            "status": [ended.then(float(INACCURATE), status[0])],
            "inaccuracy": [good.then(0.0, error / largest.most(1e-30))],
        }

    sizes = {"status": 1, "audit": LEDGER, "tolerance": 1}
    given = ("status", "audit", "energy_tolerance")
    unit = formula_tape(
        "audit_speeds", {"nu": d.n_nu}, lambda nu: {"nu": [x.like(1.0) for x in nu]}
    )
    rested = formula_tape("audit_rest", {"doubt": 1, "audit": LEDGER, "energy": 2}, rest)
    body = (
        Evaluate(unit, ("nu", "audit_nu")),
        d.evaluate(energy, {"nu": "audit_nu"}, "audit_energy"),
        Evaluate(rested, ("audit_doubt", "audit", "audit_energy", "audit", "audit_doubt")),
    )
    return [
        Evaluate(formula_tape("audit_doubt", sizes, doubt), (*given, "audit_doubt")),
        While("audit_doubt", body),
        Evaluate(formula_tape("audit_verdict", sizes, judge), (*given, "status", "inaccuracy")),
    ]


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
