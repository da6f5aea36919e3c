"""Stepper: runs that a loop in Python advances in place, a few steps at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.argument_types import check_arguments
from axode.codegen.targets.cpu import OPERATIONS_PER_THREAD
from axode.codegen.targets.step_call import NOT_HANDLED, RUNNING, step_call
from axode.errors import (
    InvalidArgument,
    NotApplicable,
    SimulationFailed,
    SingularConfiguration,
    UnknownName,
    shortened,
)
from axode.model.model import Model
from axode.model.model_parts import entry_of
from axode.model.named_arguments import as_numbers
from axode.model.signal_values import unknown_forces
from axode.model.signals import ENERGIES
from axode.numerics.tolerances import NEARLY_SINGULAR
from axode.problems.arguments import read_state
from axode.problems.inputs.inputs import InputReader, input_bounds, limit_inputs
from axode.problems.runs.batch import Batch
from axode.problems.runs.session import MAX_BUDGET, Task
from axode.problems.runs.settings import DEFAULT_STEP, Settings
from axode.problems.simulate.failures import find_causes
from axode.problems.simulate.scenario import Scenario
from axode.problems.simulate.starts import Starts, find_starts
from axode.problems.singular.pivots import find_flattest_wheel, find_smallest_pivots
from axode.problems.singular.switching import describe_loss
from axode.problems.steps import step_acceptance as ended
from axode.problems.steps.methods import METHODS

Array = npt.NDArray[np.float64]
STEPS = 1e9  # that settings are checked for; a stepper takes as many as it is asked for
ENDLESS = 2.0**53  # steps, more than anybody takes
REFUSED = ("events", "singular", "jumps")  # options of other verbs
AT_END = (ended.FINISHED, ended.INACCURATE)  # of adaptive steps at the end of a step


class Stepper:
    """Runs of a model that are advanced in place, for loops of control, learning and hardware.

    What it needs is checked, compiled and allocated when it is made: `step` then copies the inputs,
    takes the steps, and neither checks nor allocates. The steps are those of `simulate`, with the
    same bits. A run that fails stays where it is; `status` shows it and `check` raises its error.

    Args:
        model: What moves.
        step: Length of a step [s]; adaptive methods take as many as they need within it.
        method: "rk4", or an adaptive one of `simulate`.
        batch: Number of runs, or the shape of a batch; that of start, parameters and input unless
            given.
        options: Others of `simulate`: `start`, `parameters`, `input` (a law, formulas of time or
            samples; `step` takes inputs unless given), `t0`, `rtol`, `atol`, `threads`.

    Attributes:
        model: What moves.
        batch: Shape of the batch, () for one run.
        x: State, (*batch, size): coordinates, then independent speeds. It is the memory that the
            steps work on, as are the views `q` and `nu`; a state that is written there must keep
            the constraints.
        q, nu: Coordinates and independent speeds.
        u: Inputs that the next step holds, (*batch, size); None where a law gives them.
    """

    def __init__(
        self,
        model: Model,
        step: float = DEFAULT_STEP,
        method: str = "rk4",
        batch: int | tuple[int, ...] | None = None,
        **options: Any,
    ) -> None:
        check_arguments(Stepper.__init__, {"step": step, "method": method})
        if method not in METHODS:
            raise UnknownName("stepper", "method", method, METHODS)
        refused = [name for name in REFUSED if name in options]
        if refused:
            raise NotApplicable(f"stepper takes no {refused[0]}; simulate does")
        options |= {"method": method} | ({"step": step} if method == "rk4" else {})
        scenario = Scenario(model, STEPS * step, **options)
        if scenario.plan.callback is not None:
            raise InvalidArgument("stepper: call the function in the loop, step(function(...))")
        if scenario.place.target != "cpu":
            raise NotApplicable("stepper: its steps are computed on the CPU; use target='cpu'")
        shape = () if batch is None else tuple(np.atleast_1d(batch).tolist())
        begun = scenario.starts_beside(shape)
        if begun.first_error is not None:
            raise begun.first_error
        self.model, self.batch, self.step_size = scenario.model, begun.batch, float(step)
        self._settings: Settings = scenario.settings()
        task = Task(self.model, scenario.plan.spread(self.batch), self._settings)
        if task.dynamics().switches:
            raise NotApplicable(
                f"stepper: '{model.name}' or its input switches at times that must be known ahead; "
                "simulate finds them, and step(u) takes inputs that switch"
            )
        self._runs = _make_runs(task, begun)
        b, n = self._runs.buffers, len(self.model.coordinates)
        x = np.concatenate([b["q"], b["nu"]], axis=1)
        b["q"], b["nu"] = x[:, :n], x[:, n:]
        self._inputs: Array | None = b.get("u")
        self._state = {name: b[name] for name in self._runs.rollout.program.state}
        self._adaptive = self._settings.adaptive
        if self._adaptive:
            self._state["turns"] = np.zeros((len(x), 1))
        self._first = self.save()
        self._reader_of_inputs = InputReader(self.model)
        self._signals: dict[str, Callable[[], Any]] = {}
        self._steps = self._runs.rollout.bind(b, self._runs.tables)
        self._call = self._native_call()
        self._time, self._status = self._column("t", 0), self._column("status", 0)
        self.x = self._shaped(x)
        self.q, self.nu = self.x[..., :n], self.x[..., n:]
        self.u = None if self._inputs is None else self._shaped(self._inputs)

    def __repr__(self) -> str:
        runs = f"batch of {self.batch}, " if self.batch else ""
        return f"Stepper('{self.model.name}', {runs}{self._settings.method}, {self.step_size:g} s)"

    def step(self, u: Any = None, steps: int = 1) -> bool:
        """Advance all runs; return whether all of them go on.

        Args:
            u: Inputs held during the steps, in order or by name; those of `u` unless given. Limits
                of motors are kept. An array of float64 of the shape of `u` is read as it is.
            steps: How many steps to take.
        """
        answer = self._call(u, steps)
        return answer == RUNNING if answer else self._advance(u, steps)

    def __getitem__(self, name: str) -> Any:
        """Value of a signal now, by its name: a number, or an array of the shape of the batch.

        Coordinates, independent speeds and inputs of a batch are views, others are computed.
        """
        read = self._signals.get(name)
        if read is None:
            read = self._signals[name] = self._reader(name)
        return read()

    @property
    def t(self) -> Any:
        """Time [s], a number or an array of the shape of the batch."""
        return self._time()

    @property
    def status(self) -> Any:
        """What runs do, a number or an array of the shape of the batch: 0 for those that go on."""
        return self._status()

    @property
    def pivot(self) -> Any:
        """Smallest pivot of all solves behind the speeds: zero where a state is singular."""
        b = self._runs.buffers
        found = find_smallest_pivots(self.model, b["q"], self._runs.conditions(slice(None)))
        return found.reshape(self.batch) if self.batch else float(found[0])

    def check(self) -> None:
        """Raise the error of the first run that has failed, if there is one.

        Raises:
            SingularConfiguration: where the motion is no longer determined.
            SimulationFailed: where a number is not finite, or adaptive steps become too short.
        """
        b = self._runs.buffers
        failed = np.flatnonzero(b["status"][:, 0] != ended.RUNNING)
        if not failed.size:
            return
        run = int(failed[0])
        of = f", run {run} of {len(b['q'])}," if self.batch else ""
        t = float(b["t"][run, 0])
        if b["status"][run, 0] == ended.SINGULAR:
            q, there = b["q"][run].copy(), self._runs.conditions(run)
            flat, cause = find_flattest_wheel(self.model, q, there)
            if flat > NEARLY_SINGULAR:
                known = self.model.has_equations
                cause = describe_loss(self.model, q, there) if known else "a pivot vanishes"
            raise SingularConfiguration(
                f"'{self.model.name}'{of} is at a singular configuration at t = {t:.6g} s: {cause}."
                "\n  simulate changes to other independent speeds where that helps; a stepper "
                "keeps its own, derive(independent=[...])",
                None,
                t,
            )
        cause = str(find_causes(self._runs, failed[:1])[0])
        raise SimulationFailed(
            f"'{self.model.name}'{of} failed at t = {t:.6g} s: {cause}.", None, t
        )

    def save(self) -> dict[str, Array]:
        """Return a copy of all that changes, for `restore`."""
        return {name: array.copy() for name, array in self._state.items()}

    def restore(self, saved: Mapping[str, Array], runs: Any = ...) -> None:
        """Return to what `save` gave: all runs, or those of an index or a mask."""
        for name, array in self._state.items():
            array[_rows(runs)] = saved[name][_rows(runs)]

    def reset(self, start: Any = None, runs: Any = ...) -> None:
        """Return to the start, or begin at another one.

        Args:
            start: State to start from, in any form that `simulate` takes, for the runs that are
                reset.
            runs: Index or mask of these runs; all unless given.
        """
        begun = None
        if start is not None:
            p, rows = self._runs.p, np.arange(len(self._state["q"]))[_rows(runs)]
            p = p if p is None or p.ndim == 1 else p[rows]
            given = read_state(self.model, start, "start")
            begun = find_starts(self.model, given, self._settings.t0, p, (len(rows),))
            if begun.first_error is not None:
                raise begun.first_error
        self.restore(self._first, runs)
        if begun is not None:
            for name, array in (("q", begun.q), ("nu", begun.nu)):
                self._state[name][rows] = array

    def _advance(self, given: Any, steps: int) -> bool:
        """Do what the C function does not: check and convert, adaptive steps, large batches."""
        if type(steps) is not int or steps < 1:
            raise InvalidArgument(f"steps: expected a whole number > 0, got {shortened(steps)}")
        if self._inputs is not None:
            u = self._inputs if given is None else self._read_inputs(given)
            self._inputs[...] = limit_inputs(self.model, u)
        elif given is not None:
            raise InvalidArgument("step: the input that the stepper was made with gives u")
        b, threads = self._runs.buffers, self._settings.threads
        status = b["status"]
        if not self._adaptive:
            self._steps(steps, threads)
            return not status.any()
        for _ in range(steps):
            self._state["turns"] += 1.0
            b["t_end"][...] = self._settings.t0 + self._state["turns"] * self.step_size
            self._steps(MAX_BUDGET, threads)
            status[np.isin(status, AT_END)] = ended.RUNNING
        return not status.any()

    def _read_inputs(self, given: Any) -> Array:
        assert self._inputs is not None
        names, shape = self.model.inputs, (*self.batch, self._inputs.shape[-1])
        if not self.batch and type(given) in (dict, list):
            u = self._reader_of_inputs(given)
        elif isinstance(given, Mapping):
            u = np.zeros(shape)
            for name, value in self.model.signals.names("input").by_full_name(given).items():
                u[..., names.index(name)] = as_numbers(name, value)
        else:
            u = as_numbers("u", given)
        try:
            return np.broadcast_to(u, shape).reshape(self._inputs.shape)
        except ValueError:
            raise InvalidArgument(
                f"u: expected {len(names)} numbers ({', '.join(names)}), an array of shape "
                f"{shape}, got shape {u.shape}"
            ) from None

    def _native_call(self) -> Callable[[Any, int], int]:
        """Make the function that copies inputs and takes steps of few runs."""
        if self._adaptive:
            return lambda u, steps: NOT_HANDLED
        b, program = self._runs.buffers, self._runs.rollout.program
        u = np.zeros((len(b["status"]), 0)) if self._inputs is None else self._inputs
        bounds = np.zeros_like(u) + input_bounds(self.model)[: u.shape[1]]
        ndim = -1 if self._inputs is None or len(self.batch) > 1 else 1 + len(self.batch)
        effort = sum(tape.n_operations for tape in program.tapes) * len(b["status"])
        limit = max(1, OPERATIONS_PER_THREAD // effort)
        if effort > OPERATIONS_PER_THREAD:
            return lambda u, steps: NOT_HANDLED
        return step_call(self._steps, u, bounds, ndim, b["status"], limit)

    def _shaped(self, rows: Array) -> Array:
        """View of an array (runs, ...) in the shape of the batch."""
        shaped = rows.view()
        shaped.shape = (*self.batch, rows.shape[-1])  # never a copy
        return shaped

    def _column(self, name: str, index: int) -> Callable[[], Any]:
        """Make a function that returns a number of every run."""
        array = self._shaped(self._runs.buffers[name])
        column = array[..., index]
        return (lambda: column) if self.batch else lambda: array.item(index)

    def _reader(self, name: str) -> Callable[[], Any]:
        """Make a function that returns a signal."""
        signal = self.model.signals.resolve(name)
        function, index = signal.function, signal.index
        if function in ("q", "nu", "w") or (function == "u" and self._inputs is not None):
            return self._column(function, index)
        if function == "contact_forces" and index in unknown_forces(self.model):
            return lambda: np.full(self.batch, np.nan)[()]
        if function == "energy_balance":
            kinetic, *others = (self._reader(name) for name in ENERGIES[:-1])
            begun = self._column("audit", 1)  # zero until the first step
            fresh = self._column("audit", 0)
            signs = (1.0, -1.0, 1.0)

            def balance() -> Any:
                total = kinetic() + sum(s * read() for s, read in zip(signs, others, strict=True))
                return (total - begun()) * (np.asarray(fresh()) > 0.0)

            return balance
        if function == "u":
            return lambda: self._shaped(self._inputs_now())[..., index].copy()[()]
        evaluate = self._function("residual" if function == "largest_residual" else function)
        if function == "largest_residual":
            return lambda: np.abs(evaluate()).max(axis=-1).reshape(self.batch)[()]
        if self.batch:
            return lambda: self._shaped(evaluate())[..., index].copy()
        return lambda: evaluate().item(index)

    def _function(self, name: str) -> Callable[[], Array]:
        """Make a function that evaluates one of the model's now, (runs, size), into one array."""
        b, entry = self._runs.buffers, entry_of(self.model, name)
        known = {**b, "u": self._inputs_now()}
        one = not self.batch
        arrays = [known[a][0] if one and known[a].ndim > 1 else known[a] for a in entry.arguments]
        out = np.array(entry.call(*arrays))
        flat, call = out.reshape(len(b["q"]), -1), entry.call
        law = self._inputs is None and "u" in entry.arguments

        def evaluate() -> Array:
            if law:
                known["u"][...] = self._inputs_now()
            call(*arrays, out=out)
            return flat

        return evaluate

    def _inputs_now(self) -> Array:
        """Inputs at the present state, (runs, size); an array of their own if a law gives them."""
        if self._inputs is not None:
            return self._inputs
        b, runs = self._runs.buffers, np.arange(len(self._state["q"]))
        made = self._runs.input_at(runs, b["t"][:, 0], b["q"], b["nu"])
        return np.zeros((len(runs), len(self.model.inputs))) + made


def _rows(runs: Any) -> Any:
    """Index of rows of an array (runs, ...)."""
    index = np.asarray(runs)
    return slice(None) if runs is ... else index.ravel()


def _make_runs(task: Task, begun: Starts) -> Batch:
    """Make the buffers of runs that do not end."""
    count, settings = len(begun.q), task.settings
    out = np.zeros((count, 1, begun.q.shape[1] + begun.nu.shape[1] + 2))
    start = {"q": begun.q, "nu": begun.nu}
    runs = Batch(task, np.arange(count), start, begun.p, out, alike=count > 1)
    b = runs.buffers
    b["least_pivot"] = np.array([NEARLY_SINGULAR])
    if "u" in b:
        b["u"] = np.zeros((count, len(task.model.inputs))) + b["u"]
    if settings.adaptive:
        b["stiff_limit"], b["rows"] = np.array([np.inf]), np.zeros(1)
        b["t_end"], runs.tables["times"] = np.zeros((count, 1)), np.zeros((1, 1))
    else:
        b["n_steps"], b["save_steps"] = np.array([ENDLESS]), np.array([2.0 * ENDLESS])
    return runs
