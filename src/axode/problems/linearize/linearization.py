"""A linear model with names: what it says of a mechanism near one state, and what to make of it."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.argument_types import check_arguments
from axode.disk.atomic import write_atomically
from axode.errors import FileError, InvalidArgument, NotApplicable, counted, install_command
from axode.model.state import State
from axode.names import Names, as_names
from axode.numerics.tolerances import NEGLIGIBLE, NO_MOTION
from axode.problems.linearize.controllability import (
    ReachableModes,
    controllable,
    observable,
    poles_of,
    poles_text,
)
from axode.problems.linearize.feedback import Reading, StateFeedback, feedback, lqr
from axode.problems.linearize.steady_motions import CoMoving

Array = npt.NDArray[np.float64]
WIDTH = 100  # characters of a printed line


@dataclass(frozen=True, eq=False, repr=False)
class Linearization:
    """x' = drift + A (x - x0) + B (u - u0), y = y0 + C (x - x0) + D (u - u0), every row named.

    Attributes:
        name: The model's.
        states, inputs, outputs: Names, in the order of the matrices.
        A, B, C, D: The matrices.
        x0, u0, y0: Values at the operating point.
        drift: Rates of the states there; zero at an equilibrium. After `discretized`, what it adds
            in one step.
        point: The operating point, every coordinate, speed and measure by name.
        units: Units of states, inputs and outputs, by name.
        readings: How each state is read from a state of the model.
        held: All inputs at the operating point, chosen or not.
        changing: Why the operating point does not persist: independent speeds that change, or
            states that drift ever faster; empty at an equilibrium and in steady motion.
        dt: Time between samples [s]; 0 in continuous time.
        axes: Axes that move along with a steady motion, in which the states are counted.
        carried: States that mean something else in axes that stand still.
        modes: What contacts with friction, joints that rub and stops do there, by name: "stick",
            "closed" or "open"; empty for mechanisms without.
    """

    name: str
    states: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    A: Array
    B: Array
    C: Array
    D: Array
    x0: Array
    u0: Array
    y0: Array
    drift: Array
    point: State
    units: Mapping[str, str]
    readings: tuple[Reading, ...]
    held: Mapping[str, float]
    changing: tuple[str, ...] = ()
    dt: float = 0.0
    axes: CoMoving = field(default_factory=CoMoving)
    carried: tuple[str, ...] = ()
    modes: Mapping[str, str] = field(default_factory=dict)

    # what it says ------------------------------------------------------------------------------

    @property
    def poles(self) -> npt.NDArray[np.complex128]:
        """Eigenvalues of A [1/s], sorted by their real parts."""
        return poles_of(self.A)

    @property
    def stable(self) -> bool:
        """Return whether every deviation decays."""
        growth = np.abs(self.poles) - 1 if self.dt else self.poles.real
        return bool((growth < 0).all())

    @property
    def steady(self) -> bool:
        """Return whether the operating point persists, or drifts only at constant rates."""
        return not self.changing

    @property
    def equilibrium(self) -> bool:
        """Return whether the operating point persists in fixed axes, without drift."""
        return self.steady and not self.axes.rates and bool((np.abs(self.drift) < NO_MOTION).all())

    @property
    def controllable(self) -> ReachableModes:
        """Return whether the inputs move every mode; if not, which they do not."""
        return controllable(self.A, self.B, self.states)

    @property
    def observable(self) -> ReachableModes:
        """Return whether the outputs show every mode; if not, which they do not."""
        return observable(self.A, self.C, self.states)

    def names(self, kind: str) -> Names:
        """Names of its states, inputs or outputs, with the rule for short ones.

        Args:
            kind: "state", "input" or "output".
        """
        check_arguments(Linearization.names, locals())
        return Names(f"the linearization of '{self.name}'", kind, getattr(self, f"{kind}s"))

    # other forms -------------------------------------------------------------------------------

    def reduced(self, states: Sequence[str]) -> Linearization:
        """Return the same on some of its states, if they and the outputs depend on no other.

        Outputs that are states left out go with them.

        Raises:
            InvalidArgument: naming what depends on what, and the states to add.
        """
        check_arguments(Linearization.reduced, locals())
        names = tuple(self.names("state").resolve(name) for name in as_names(states))
        if len(set(names)) != len(names):
            raise InvalidArgument("reduced: a state is named twice")
        outputs = [k for k, y in enumerate(self.outputs) if y in names or y not in self.states]
        closed, why = self._closure(names, [self.C[k] for k in outputs])
        if why:
            more = [name for name in closed if name not in names]
            raise InvalidArgument(
                f"reduced: these states depend on others: {why}.\n  Add {', '.join(more)}."
            )
        keep = [self.states.index(name) for name in names]
        return replace(
            self,
            states=names,
            outputs=tuple(self.outputs[k] for k in outputs),
            A=self.A[np.ix_(keep, keep)],
            B=self.B[keep],
            C=self.C[np.ix_(outputs, keep)],
            D=self.D[outputs],
            x0=self.x0[keep],
            y0=self.y0[outputs],
            drift=self.drift[keep],
            readings=tuple(self.readings[k] for k in keep),
            carried=tuple(name for name in self.carried if name in names),
        )

    def _closure(self, names: Sequence[str], outputs: Sequence[Array]) -> tuple[list[str], str]:
        """Find the states that some states depend on, and describe the first dependencies."""
        closed, why, k = list(names), [], 0
        rows = [(self.states[i], self.A[i]) for i in range(len(self.states))]
        for row in outputs:
            closed += [n for n in self._used(row) if n not in closed]
        if len(closed) > len(names):
            why.append(f"an output depends on {', '.join(closed[len(names) :])}")
        while k < len(closed):
            used = [n for n in self._used(dict(rows)[closed[k]]) if n not in closed]
            if used:
                why.append(f"{closed[k]} depends on {', '.join(used)}")
                closed += used
            k += 1
        return closed, "; ".join(why)

    def _used(self, row: Array) -> list[str]:
        size = NEGLIGIBLE * max(1.0, float(np.abs(row).max(initial=0.0)))
        return [n for n, a in zip(self.states, row.tolist(), strict=True) if abs(a) > size]

    def discretized(self, dt: float) -> Linearization:
        """In steps of dt [s], inputs held during each."""
        check_arguments(Linearization.discretized, locals())
        from scipy.linalg import expm

        if self.dt:
            raise InvalidArgument(f"discretized: this model is already in steps of {self.dt} s")
        dt = float(dt)
        if not (np.isfinite(dt) and dt > 0):
            raise InvalidArgument(f"discretized: dt must be > 0 s, got {dt}")
        n, m = self.B.shape
        extended = np.zeros((n + m + 1,) * 2)
        extended[:n] = np.column_stack([self.A, self.B, self.drift])
        made = expm(dt * extended)[:n]
        return replace(self, A=made[:, :n], B=made[:, n : n + m], drift=made[:, -1], dt=dt)

    def to_control(self) -> Any:
        """A `control.StateSpace` of python-control, with names; dots in them become underscores.

        Raises:
            NotApplicable: if python-control is not installed.
        """
        try:
            import control
        except ImportError:
            raise NotApplicable(
                f"python-control is not installed: {install_command('control')}"
            ) from None
        names = {
            part: [name.replace(".", "_") for name in getattr(self, part)]
            for part in ("states", "inputs", "outputs")
        }
        return control.StateSpace(
            self.A, self.B, self.C, self.D, self.dt, name=self.name.replace(".", "_"), **names
        )

    # control -----------------------------------------------------------------------------------

    def lqr(self, Q: Any = 1.0, R: Any = 1.0) -> StateFeedback:
        """Feedback of least cost, the integral (the sum, if discretized) of x Q x + u R u.

        Args:
            Q: Weights of deviations of states: by name (none elsewhere), a number for all, numbers
                in order, or a matrix.
            R: Weights of inputs, likewise.

        Raises:
            InvalidArgument: if modes that do not decay cannot be moved or cost nothing, naming
                the states.
        """
        return self._readable(lqr(self, Q, R))

    def state_feedback(self, K: Any) -> StateFeedback:
        """Feedback with gains of your own: a matrix (inputs, states), or {input: {state: gain}}."""
        return self._readable(feedback(self, K))

    def _readable(self, law: StateFeedback) -> StateFeedback:
        """A law that reads no state which is counted in moving axes."""
        used = [
            n for n in self.carried if np.abs(law.K[:, self.states.index(n)]).max() > NEGLIGIBLE
        ]
        if used:
            raise InvalidArgument(
                f"a law cannot read {', '.join(used)}: they are measured in rotating axes "
                f"({self.axes}).\n  Linearize on states in fixed axes, such as your own "
                "measures: mechanism.measure(name, function)."
            )
        return law

    # text --------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return (
            f"Linearization('{self.name}': {counted(len(self.states), 'state')}, "
            f"{counted(len(self.inputs), 'input')}, {counted(len(self.outputs), 'output')})"
        )

    def _repr_html_(self) -> str:
        from axode.printing.mathml import notebook, table

        step = f", in steps of {self.dt:g} s" if self.dt else ""
        heads = ("", *self.states, *self.inputs)

        def rows(names: Sequence[str], blocks: Array) -> list[tuple[str, ...]]:
            texts = [[_number(x, blocks) for x in row] for row in blocks.tolist()]
            return [(name, *text) for name, text in zip(names, texts, strict=True)]

        states = [f"{name}{'+' if self.dt else chr(39)}" for name in self.states]
        parts = [table(heads, rows(states, np.column_stack([self.A, self.B])))]
        if self.outputs != self.states:
            parts.append(table(heads, rows(self.outputs, np.column_stack([self.C, self.D]))))
        known = [("poles", poles_text(self.poles))]
        known += [("", str(self.controllable)), ("", str(self.observable))]
        title = f"{self.name}, linearized at {self._where()}{step}: {self._kind()}"
        return notebook(title, *parts, table(("", ""), known, numbers=False))

    def __str__(self) -> str:
        step = f", in steps of {self.dt:g} s" if self.dt else ""
        lines = [f"{self.name}, linearized at {self._where()}{step}: {self._kind()}"]
        if self.modes:
            lines.append("  contacts: " + ", ".join(f"{n} {m}" for n, m in self.modes.items()))
        both = np.column_stack([self.A, self.B])
        rows = [f"{name}{'+' if self.dt else chr(39)}" for name in self.states]
        lines += named_matrix(rows, (*self.states, *self.inputs), both)
        if self.outputs != self.states:
            both = np.column_stack([self.C, self.D])
            lines += ["", *named_matrix(self.outputs, (*self.states, *self.inputs), both)]
        lines += ["", f"  poles  {poles_text(self.poles)}"]
        return "\n".join([*lines, f"  {self.controllable}", f"  {self.observable}"])

    def _where(self) -> str:
        pairs = [(n, x) for n, x in zip(self.states, self.x0, strict=True) if abs(x) > NO_MOTION]
        # a measure among the states may be one of these speeds by another name
        speeds = zip(self.point.model.independent, self.point.nu.tolist(), strict=True)
        pairs += [
            (n, v)
            for n, v in speeds
            if abs(v) > NO_MOTION
            and n not in self.states
            and np.abs(self.x0 - v).min(initial=np.inf) > NO_MOTION
        ]
        pairs += [(n, u) for n, u in self.held.items() if abs(u) > NO_MOTION]
        return ", ".join(f"{n} = {x:.4g}" for n, x in pairs) or "zero"

    def _kind(self) -> str:
        if self.axes.rates:
            moving = [n for n, x in zip(self.states, self.drift, strict=True) if abs(x) > NO_MOTION]
            more = f", with a steady motion of {', '.join(moving)}" if moving else ""
            return f"a steady motion, states measured in rotating axes: {self.axes}{more}"
        if self.equilibrium:
            return "an equilibrium"
        if not self.steady:
            verb = "changes" if len(self.changing) == 1 else "change"
            return f"no equilibrium, {', '.join(self.changing)} {verb}"
        drifting = zip(self.states, self.drift.tolist(), strict=True)
        return f"a steady motion of {', '.join(n for n, rate in drifting if abs(rate) > NO_MOTION)}"

    def to_dict(self) -> dict[str, Any]:
        """Everything in JSON's own types."""
        arrays = {
            n: getattr(self, n).tolist() for n in ("A", "B", "C", "D", "x0", "u0", "y0", "drift")
        }
        poles = [[p.real, p.imag] for p in self.poles.tolist()]
        return {
            "model": self.name,
            "states": list(self.states),
            "inputs": list(self.inputs),
            "outputs": list(self.outputs),
            **arrays,
            "dt": self.dt,
            "units": dict(self.units),
            "held": dict(self.held),
            "poles": poles,
            "equilibrium": self.equilibrium,
            "axes": dict(self.axes.rates),
            "controllable": str(self.controllable),
            "observable": str(self.observable),
            "point": self.point.as_dict(),
        }

    def save(self, path: str | PathLike[str]) -> None:
        """Write it to a file: `.npz` (arrays and names) or `.json`.

        Raises:
            FileError: for another ending, or where nothing can be written.
        """
        check_arguments(Linearization.save, locals())
        path, data = Path(path), self.to_dict()
        if path.suffix not in (".npz", ".json"):
            raise FileError(f"'{path}': a linearization is written as .npz or .json")
        if path.suffix == ".json":
            write_atomically(path, (json.dumps(data, indent=2) + "\n").encode())
            return
        plain: Any = {k: np.array(v) for k, v in data.items() if isinstance(v, list)}
        stream = io.BytesIO()
        np.savez(stream, **plain, dt=self.dt, model=self.name)
        write_atomically(path, stream.getbuffer())


def named_matrix(rows: Sequence[str], columns: Sequence[str], values: Array) -> list[str]:
    """Lines of a table, in blocks of as many columns as a line holds."""
    texts = [[_number(v, values) for v in row] for row in values.tolist()]
    widths = [max(map(len, (name, *(t[k] for t in texts)))) + 2 for k, name in enumerate(columns)]
    first = 2 + max(map(len, rows), default=0)
    lines: list[str] = []
    start = 0
    while start < len(columns):
        stop, used = start, first
        while stop < len(columns) and (stop == start or used + widths[stop] <= WIDTH):
            used += widths[stop]
            stop += 1
        block = range(start, stop)
        lines.append(" " * first + "".join(f"{columns[k]:>{widths[k]}}" for k in block))
        lines += [
            f"  {name:<{first - 2}}" + "".join(f"{t[k]:>{widths[k]}}" for k in block)
            for name, t in zip(rows, texts, strict=True)
        ]
        start = stop
    return lines


def _number(value: float, among: Array) -> str:
    rounding = 1e-12 * float(np.abs(among).max(initial=0.0))
    return "0" if abs(value) <= rounding else f"{value:.4g}"
