"""Stepper: runs that a loop in Python advances in place, a few steps at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from copy import copy
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.argument_types import check_arguments, check_options
from axode.codegen.targets.cpu import OPERATIONS_PER_THREAD
from axode.codegen.targets.direct_call import NOT_HANDLED, RUNNING, step_call
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
from axode.model.named_arguments import as_numbers, batch_shape
from axode.model.signals import ENERGIES
from axode.model.state import unknown_forces
from axode.numerics.tolerances import NEARLY_SINGULAR
from axode.problems.arguments import read_state, require_model
from axode.problems.inputs.inputs import InputReader, input_bounds, limit_inputs
from axode.problems.runs.batch import Batch
from axode.problems.runs.session import MAX_BUDGET, Task
from axode.problems.runs.settings import DEFAULT_STEP, Settings
from axode.problems.simulate.failures import find_causes
from axode.problems.simulate.scenario import RunOptions, Scenario, check_direction
from axode.problems.simulate.starts import Starts, find_starts, take_first_samples
from axode.problems.singular.pivots import (
    find_flattest_wheel,
    find_smallest_pivots,
    has_lost_pivots,
)
from axode.problems.singular.switching import describe_own_loss
from axode.problems.steps import step_acceptance as ended
from axode.problems.steps.compiled import METHODS
from axode.runtime.arrays import is_on_device

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
        step: Length of a step [s], negative with `backwards=True`; adaptive methods take as many
            as they need within it.
        method: "rk4", or an adaptive one of `simulate`.
        batch: Number of runs, or the shape of a batch; that of start, parameters and input unless
            given.
        options: Others of `simulate`: `start`, `parameters`, `input` (a law, formulas of time or
            samples; `step` takes inputs unless given), `t0`, `backwards`, `rtol`, `atol`,
            `threads`, `target`. With target="cuda" a batch of one axis stays on the GPU: `x`, `q`,
            `nu`, `u` and what is read of them are arrays of CuPy, and `step` takes arrays of CuPy,
            PyTorch and JAX.

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
        if not math.isfinite(step) or step == 0.0:
            raise InvalidArgument(f"step: expected a number of seconds other than zero, got {step}")
        if method not in METHODS:
            raise UnknownName("stepper", "method", method, METHODS)
        refused = [name for name in REFUSED if name in options]
        if refused:
            raise NotApplicable(f"stepper takes no {refused[0]}; simulate does")
        check_options("stepper", RunOptions, options)
        require_model("stepper", model)
        check_direction("step", step, options.get("backwards", False))
        options |= {"method": method} | ({"step": abs(step)} if method == "rk4" else {})
        scenario = Scenario(model, STEPS * step, **options)
        if scenario.place.single:
            raise NotApplicable("stepper: float32 cannot count many steps; use precision='float64'")
        if scenario.plan.callback is not None:
            raise InvalidArgument("stepper: call the function in the loop, step(function(...))")
        shape = () if batch is None else batch_shape(batch)
        try:
            begun = scenario.starts_beside(shape)
        except MemoryError:
            raise InvalidArgument(f"batch: {shape} needs more memory than there is") from None
        if begun.first_error is not None:
            raise begun.first_error
        self.model, self.batch, self.step_size = scenario.model, begun.batch, float(step)
        self._settings: Settings = scenario.settings()
        task = Task(self.model, scenario.plan.spread(self.batch), self._settings)
        dynamics = task.dynamics()
        if dynamics.reads_breaks:
            raise NotApplicable(
                f"stepper: '{model.name}' or its input switches at times that must be known ahead; "
                "simulate finds them, and step(u) takes inputs that switch"
            )
        self._runs = _make_runs(task, begun)
        self._cupy = None
        if scenario.place.target == "cuda":
            self._cupy = self._runs.rollout.kernel.cupy
            if len(self.batch) != 1:
                raise NotApplicable("stepper: on a GPU it takes a batch of one axis, batch=1000")
        b, n = self._runs.buffers, len(self.model.coordinates)
        x = self._carried(np.concatenate([b["q"], b["nu"]], axis=1))
        self._adaptive = self._settings.adaptive
        self._is_cut = dynamics.samples is not None or bool(dynamics.switches)
        names = [*self._runs.rollout.program.state, *(["u"] if "u" in b else [])]
        for name in [*names, *(["t_end"] if self._adaptive else [])]:
            b[name] = self._carried(b[name])
        b["q"], b["nu"] = x[:, :n], x[:, n:]
        self._inputs: Any = b.get("u")
        self._state = {name: b[name] for name in self._runs.rollout.program.state}
        if self._adaptive:
            self._state["turns"] = self._carried(np.zeros((len(x), 1)))
        self._shapes = {name: array.shape for name, array in self._state.items()}
        self._first = self.save()
        self._reader_of_inputs = InputReader(self.model, "u")
        self._signals: dict[str, Callable[[], Any]] = {}
        self._steps = self._runs.rollout.bind(b, self._runs.tables, resident=True)
        self._call = self._native_call()
        self._time, self._status = self._column("t", 0), self._column("status", 0)
        self.x = self._shaped(x)
        self.q, self.nu = self.x[..., :n], self.x[..., n:]
        self.u = None if self._inputs is None else self._shaped(self._inputs)

    def __repr__(self) -> str:
        runs = f"batch of {self.batch}, " if self.batch else ""
        return f"Stepper('{self.model.name}', {runs}{self._settings.method}, {self.step_size:g} s)"

    def __reduce__(self) -> Any:
        raise NotApplicable(
            "a stepper is neither copied nor pickled: make another with the same arguments, and "
            "give it what save() returned, by restore()"
        )

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
        """Smallest pivot of all solves behind the speeds, relative: zero where rows lose rank.

        A single speed that becomes unsuitable shows in none: its pivot changes its sign within a
        step, where the run stops. Before that, `self["error"]` grows with rk4.
        """
        here = self._here()
        found = find_smallest_pivots(self.model, here.buffers["q"], here.conditions(slice(None)))
        return found.reshape(self.batch) if self.batch else float(found[0])

    def check(self) -> None:
        """Raise the error of the first run that has failed, if there is one.

        Raises:
            SingularConfiguration: where the motion is no longer determined.
            SimulationFailed: where a number is not finite, or adaptive steps become too short.
        """
        here = self._here()
        b = here.buffers
        failed = np.flatnonzero(b["status"][:, 0] != ended.RUNNING)
        if not failed.size:
            return
        run = int(failed[0])
        of = f", run {run} of {len(b['q'])}," if self.batch else ""
        t = float(b["t"][run, 0])
        q, there = b["q"][run].copy(), here.conditions(run)
        status = b["status"][run, 0]
        lost = status == ended.NOT_FINITE and bool(has_lost_pivots(self.model, q, there))
        if status == ended.SINGULAR or lost:
            flat, cause = find_flattest_wheel(self.model, q, there)
            remedy = "simulate changes rows and speeds where that helps, a stepper keeps its own"
            if flat > NEARLY_SINGULAR:
                cause, better = describe_own_loss(self.model, q, there)
                remedy += f"; {better}" if better else ""
            raise SingularConfiguration(
                f"'{self.model.name}'{of} is at a singular configuration at t = {t:.6g} s: {cause}."
                f"\n  {remedy}.",
                None,
                t,
            )
        cause = str(find_causes(here, failed[:1])[0])
        raise SimulationFailed(
            f"'{self.model.name}'{of} failed at t = {t:.6g} s: {cause}.", None, t
        )

    def save(self) -> dict[str, Array]:
        """Return a copy of all that changes, for `restore`."""
        return {name: array.copy() for name, array in self._state.items()}

    def restore(self, saved: Mapping[str, Array], runs: Any = ...) -> None:
        """Return to what `save` gave: all runs, or those of an index or a mask."""
        rows = self._rows(runs)
        try:
            known = {name: array.shape for name, array in saved.items()} == self._shapes
        except AttributeError:
            known = False
        if not known:
            raise InvalidArgument(
                "restore: expected what save() of a stepper of the same model, method and batch "
                f"returned, got {shortened(saved)}"
            )
        for name, array in self._state.items():
            array[rows] = saved[name][rows]

    def reset(self, start: Any = None, runs: Any = ...) -> None:
        """Return to the start, or begin at another one.

        Args:
            start: State to start from, in any form that `simulate` takes, for the runs that are
                reset.
            runs: Index or mask of these runs; all unless given.
        """
        begun = None
        if start is not None:
            p, rows = self._runs.p, np.arange(len(self._state["q"]))[self._index(runs)]
            p = p if p is None or p.ndim == 1 else p[rows]
            given = read_state(self.model, start, "start")
            t0, plan = self._settings.t0, self._runs.plan.part(rows)
            begun = find_starts(self.model, given, t0, p, (len(rows),))
            begun = take_first_samples(plan, begun, t0)
            if begun.first_error is not None:
                raise begun.first_error
        self.restore(self._first, runs)
        if begun is not None:
            for name, array in (("q", begun.q), ("nu", begun.nu)):
                self._state[name][self._rows(rows)] = self._there(array)

    def _advance(self, given: Any, steps: int) -> bool:
        """Do what the C function does not: check and convert, adaptive steps, large batches."""
        if type(steps) is not int or steps < 1:
            raise InvalidArgument(f"steps: expected a whole number > 0, got {shortened(steps)}")
        if self._inputs is not None:
            u = self._inputs if given is None else self._read_inputs(given)
            answer = self._call(u if self.batch else u.ravel(), steps)
            if answer:
                return answer == RUNNING
            self._inputs[...] = self._limited(u)
        elif given is not None:
            raise InvalidArgument("step: the input that the stepper was made with gives u")
        b, threads = self._runs.buffers, self._settings.threads
        status = b["status"]
        if not self._adaptive:
            self._take(steps)
            return not bool(status.any())
        for _ in range(steps):
            self._state["turns"] += 1.0
            b["t_end"][...] = self._settings.t0 + self._state["turns"] * self.step_size
            self._steps(MAX_BUDGET, threads)
            for code in AT_END:
                status *= status != code
        return not bool(status.any())

    def _take(self, steps: int) -> None:
        """Take steps of rk4; those in which an input takes a sample are made of several."""
        b, threads = self._runs.buffers, self._settings.threads
        status, done = b["status"], b["step"]
        goal = done + steps
        while steps:
            self._steps(steps, threads)
            if not self._is_cut:
                return
            behind = (goal - done) * (status == ended.RUNNING)
            status += ended.FINISHED * ((status == ended.RUNNING) & (behind == 0.0))
            steps = int(behind[behind > 0.0].min()) if (behind > 0.0).any() else 0
        for code in AT_END:
            status *= status != code

    def _read_inputs(self, given: Any) -> Array:
        assert self._inputs is not None
        names, shape = self.model.inputs, (*self.batch, self._inputs.shape[-1])
        if is_on_device(given):
            u = given if self._cupy is None else self._cupy.asarray(given)
            return self._spread_inputs(u, shape)
        if not self.batch and type(given) in (dict, list):
            u = self._reader_of_inputs(given)
        elif isinstance(given, Mapping):
            u = np.zeros(shape)
            for name, value in self.model.signals.names("input").by_full_name(given).items():
                values = as_numbers(name, value)
                if values.shape not in ((), self.batch):
                    raise InvalidArgument(
                        f"{name}: expected a number, or an array of shape {self.batch}, got shape "
                        f"{values.shape}"
                    )
                u[..., names.index(name)] = values
        else:
            u = as_numbers("u", given)
        return self._there(self._spread_inputs(u, shape).reshape(self._inputs.shape))

    def _spread_inputs(self, u: Any, shape: tuple[int, ...]) -> Any:
        """Give all runs the same inputs where they are given once."""
        names = self.model.inputs
        if u.shape == shape:
            return u
        if u.shape == shape[-1:] or (not u.shape and len(names) == 1):
            return u + (np.zeros(shape) if self._cupy is None else self._cupy.zeros(shape))
        raise InvalidArgument(
            f"u: expected {len(names)} numbers ({', '.join(names)}), an array of shape {shape}, "
            f"got shape {u.shape}"
        )

    def _native_call(self) -> Callable[[Any, int], int]:
        """Make the function that copies inputs and takes steps of few runs."""
        if self._adaptive or self._is_cut or self._cupy is not None:
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

    def _there(self, array: Array) -> Any:
        """Return an array where the steps are computed."""
        return array if self._cupy is None else self._cupy.asarray(array)

    def _carried(self, array: Array) -> Any:
        """Carry an array (runs, size) to where the steps are; on a GPU runs are side by side."""
        if self._cupy is None:
            return array
        columns = self._cupy.empty(array.shape[::-1], dtype=self._runs.rollout.kernel.dtype)
        columns[...] = self._cupy.asarray(np.ascontiguousarray(array.T))
        return columns.T

    def _here(self) -> Batch:
        """Return the runs with all that changes on the CPU."""
        if self._cupy is None:
            return self._runs
        runs, asnumpy = copy(self._runs), self._cupy.asnumpy
        names = [name for name, array in runs.buffers.items() if is_on_device(array)]
        runs.buffers = {**runs.buffers}
        for name in names:
            columns = self._cupy.ascontiguousarray(runs.buffers[name])
            runs.buffers[name] = np.asarray(asnumpy(columns), dtype=float)
        return runs

    def _rows(self, runs: Any) -> Any:
        """Index of rows of an array (runs, ...) where the steps are."""
        index = self._index(runs)
        return index if isinstance(index, slice) else self._there(index)

    def _index(self, runs: Any) -> Any:
        """Index of rows of an array (runs, ...), on the CPU."""
        if runs is ...:
            return slice(None)
        index = np.asarray(runs if self._cupy is None else self._cupy.asnumpy(runs))
        count, kind = len(self._state["q"]), index.dtype.kind
        mask = kind == "b" and index.shape in (self.batch, (count,))
        if not index.size:
            return np.zeros(0, dtype=int)
        if not mask and (kind not in "iu" or index.min() < -count or index.max() >= count):
            raise InvalidArgument(
                f"runs: expected a mask of shape {self.batch or (1,)}, or whole numbers from 0 "
                f"to {count - 1}, got {shortened(runs)}"
            )
        return index.ravel()

    def _limited(self, u: Any) -> Any:
        """Inputs within the limits of the motors."""
        if self._cupy is None:
            return limit_inputs(self.model, u)
        bounds, where = self._cupy.asarray(input_bounds(self.model)), self._cupy.where
        return where(u > bounds, bounds, where(u < -bounds, -bounds, u))

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

    def _number(self, name: str, index: int) -> Callable[[], Any]:
        """Make a function that returns a number of every run, on the CPU."""
        if self._cupy is None:
            return self._column(name, index)
        return lambda: self._here().buffers[name][:, index]

    def _reader(self, name: str) -> Callable[[], Any]:
        """Make a function that returns a signal."""
        signal = self.model.signals.resolve(name)
        function, index = signal.function, signal.index
        if function in ("q", "nu") or (function == "u" and self._inputs is not None):
            return self._column(function, index)
        if function == "w":
            return self._number(function, index)
        if function == "contact_forces" and index in unknown_forces(self.model):
            return lambda: np.full(self.batch, np.nan)[()]
        if function == "energy_balance":
            kinetic, *others = (self._reader(name) for name in ENERGIES[:-1])
            begun = self._number("audit", 1)  # zero until the first step
            fresh = self._number("audit", 0)
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
        b, entry = self._here().buffers, entry_of(self.model, name)
        known = {**b, "u": self._inputs_now()}
        one = not self.batch
        arrays = [known[a][0] if one and known[a].ndim > 1 else known[a] for a in entry.arguments]
        out = np.array(entry.call(*arrays))
        flat, call = out.reshape(len(b["q"]), -1), entry.call
        law = self._inputs is None and "u" in entry.arguments

        def evaluate() -> Array:
            if self._cupy is not None:
                now = {**self._here().buffers, "u": self._inputs_now()}
                return call(*[now[a] for a in entry.arguments]).reshape(flat.shape)
            if law:
                known["u"][...] = self._inputs_now()
            call(*arrays, out=out)
            return flat

        return evaluate

    def _inputs_now(self) -> Array:
        """Inputs at the present state, (runs, size); an array of their own if a law gives them."""
        here = self._here()
        if self._inputs is not None:
            return here.buffers["u"]
        b, runs = here.buffers, np.arange(len(self._state["q"]))
        made = here.input_at(runs, b["t"][:, 0], b["q"], b["nu"])
        return np.zeros((len(runs), len(self.model.inputs))) + made


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
