"""The methods of integration as programs of tapes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from axode.codegen.lowering.program import Evaluate, Operation, Program, While, WriteRow
from axode.codegen.tape.formulas import Vector, formula_tape
from axode.problems.steps.dormand_prince import dopri5_program
from axode.problems.steps.radau import radau9_program
from axode.problems.steps.rates import Dynamics
from axode.problems.steps.rosenbrock import rodas5p_program
from axode.problems.steps.stages import active, advanced, judged, stage


@dataclass(frozen=True)
class Gathering:
    """What a program does besides its steps.

    Attributes:
        first: Before the first step of every call.
        each_step: After every step; `commit` tells whether it was taken, from `t_o`, by `h_s`.
        state: Its own buffers that live between calls.
    """

    first: tuple[Operation, ...]
    each_step: tuple[Operation, ...]
    state: dict[str, int]


def rk4_program(d: Dynamics, gathering: Gathering | None = None) -> Program:
    """The classic method of order four, in n_steps of length h, the last one ending at t_end.

    Every save_steps-th state and the last one go to the table `out`; or, instead, something is
    gathered at every step and no state is kept.
    """
    body: list[Operation] = [_length(), *d.rate_at("q", "nu", "t", "k1")]
    weights = {2: [0.5], 3: [0.0, 0.5], 4: [0.0, 0.0, 1.0]}
    for number, node in ((2, 0.5), (3, 0.5), (4, 1.0)):
        body += stage(d, number, weights[number], node)

    def finish(
        q: Vector,
        nu: Vector,
        w: Vector,
        h: Vector,
        step: Vector,
        a: Vector,
        b: Vector,
        c: Vector,
        e: Vector,
    ) -> dict[str, Vector]:
        x = [
            y + h[0] / 6.0 * (a[i] + 2.0 * (b[i] + c[i]) + e[i])
            for i, y in enumerate([*q, *nu, *w])
        ]
        return {**d.split(x), "step": [step[0] + 1.0], "accepted": [0.0 * step[0] + 1.0]}

    sizes = {
        "q": d.n_q,
        "nu": d.n_nu,
        "w": 2,
        "h": 1,
        "step": 1,
        "a": d.n_k,
        "b": d.n_k,
        "c": d.n_k,
        "e": d.n_k,
    }
    body.append(
        Evaluate(
            formula_tape("finish", sizes, finish),
            (
                "q",
                "nu",
                "w",
                "h_s",
                "step",
                "k1",
                "k2",
                "k3",
                "k4",
                "q_n",
                "nu_n",
                "w_n",
                "step_n",
                "accepted",
            ),
        )
    )
    saved = _saved_steps(d) if gathering is None else gathering.each_step
    body += [*d.closed(), *judged(d, "step"), *saved]
    ended = formula_tape(
        "active",
        {"status": 1, "step": 1, "n": 1},
        lambda status, step, n: active(status[0], step[0] >= n[0]),
    )
    look = Evaluate(ended, ("status", "step", "n_steps", "status", "active"))
    given = dict.fromkeys(("h", "t0", "t_end", "n_steps", "save_steps"), 1)
    first = [*d.watched("q", "nu", "t"), look]
    state, tables = d.state() | {"step": 1}, d.tables()
    if gathering is not None:
        first = [*gathering.first, *first]
        state |= gathering.state
        del tables["out"], given["save_steps"], state["index"]
    return Program(
        "rk4",
        state=state,
        tables=tables,
        given=given | d.givens(),
        operations=(*first, While("active", (*body, look), counted=True)),
    )


def _length() -> Evaluate:
    """Length and end of the step; by multiplication, as a sum of a million steps would drift."""

    def length(
        t: Vector, h: Vector, t0: Vector, t_end: Vector, step: Vector, n_steps: Vector
    ) -> dict[str, Vector]:
        last = step[0] + 1.0 >= n_steps[0]
        return {
            "h_s": [last.then(t_end[0] - t[0], h[0])],
            "t_n": [last.then(t_end[0], t0[0] + (step[0] + 1.0) * h[0])],
        }

    names = ("t", "h", "t0", "t_end", "step", "n_steps")
    return Evaluate(formula_tape("length", dict.fromkeys(names, 1), length), (*names, "h_s", "t_n"))


def _saved_steps(d: Dynamics) -> list[Operation]:
    def due(**v: Vector) -> dict[str, Vector]:
        ratio = v["step"][0] / v["save_steps"][0]
        flag = v["commit"][0] & (ratio.equals(ratio.floor()) | (v["step"][0] >= v["n_steps"][0]))
        return {"due": [flag], "x": [*v["q"], *v["nu"], *v["w"]]}

    sizes = {
        "commit": 1,
        "step": 1,
        "save_steps": 1,
        "n_steps": 1,
        "q": d.n_q,
        "nu": d.n_nu,
        "w": 2,
    }
    look = Evaluate(formula_tape("due", sizes, due), (*sizes, "due", "x"))
    return [look, WriteRow("out", "index", "x", "due"), advanced()]


AUTOMATIC, EXPLICIT, IMPLICIT = "auto", "dopri5", "radau9"  # the first one chooses
METHODS: dict[str, Callable[[Dynamics], Program]] = {
    "rk4": rk4_program,
    "dopri5": dopri5_program,
    "rodas5p": rodas5p_program,
    "radau9": radau9_program,
}
