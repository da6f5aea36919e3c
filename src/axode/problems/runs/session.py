"""One call of `simulate` or `sweep`: buffers of its runs, step budget, progress and Ctrl-C."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.codegen.tape.tape import Tape
from axode.errors import Interrupted, UnknownName
from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.problems.inputs.inputs import InputPlan
from axode.problems.progress import Interrupt, Progress
from axode.problems.runs.settings import Settings
from axode.problems.runs.step_log import StepLog
from axode.problems.steps.break_times import BreakTable, break_table
from axode.problems.steps.compiled import EXPLICIT, STEPS, StepOptions, dynamics_of
from axode.problems.steps.rates import Dynamics
from axode.problems.steps.tableaus import EXPLICIT_METHODS
from axode.results.columns import Event
from axode.runtime.launch import Summary

Array = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.intp]
ON_INTERRUPT = ("raise", "return")
SLICE = 0.1  # [s] of computing between polls of the keyboard and the progress bar
FIRST_SLICE = 1e6  # operations of the model in the first one, well below SLICE
MAX_BUDGET = 1 << 40
REGROUPED, LEAST_BUDGET = 0.1, 16  # part of a slice after which runs are regrouped, steps in it


@dataclass(frozen=True)
class Task:
    """What compiled steps are made of.

    Attributes:
        model: What moves.
        plan: Its input.
        settings: How to integrate.
        events: Zero crossings to locate.
        speeds: What the user's functions call nu, where the model has other independent speeds.
        log: Keeps the steps of all runs; nothing does unless given.
        gathered: Functions of the state that are gathered along the runs.
        quadrature: By model, the rate of a number whose error adaptive steps limit.
    """

    model: Model
    plan: InputPlan
    settings: Settings
    events: tuple[Event, ...] = ()
    speeds: tuple[str, ...] | None = None
    log: StepLog | None = None
    gathered: tuple[Tape, ...] = ()
    quadrature: Callable[[Model], Tape | None] | None = None

    def dynamics(self, *, stiffness: bool = False) -> Dynamics:
        """Collect the tapes that the steps are made of."""
        place = self.settings.place
        quadrature = None if self.quadrature is None else self.quadrature(self.model)
        method = EXPLICIT_METHODS.get(self.settings.stepper)
        backwards = self.log is not None and self.log.backwards  # rates of stages are in its log
        return dynamics_of(
            self.model,
            self.plan,
            self.events,
            self.speeds,
            StepOptions(
                single=place.single,
                stiffness=stiffness,
                max_numbers=place.max_numbers,
                log=self.log is not None,
                logged_stages=method.used_stages if backwards and method is not None else 0,
                interleaved=backwards,
                grid=self.settings.adaptive and self.log is not None and self.log.grid is not None,
                breaks=True,
                gathered=(*self.gathered, quadrature),
                quadrature=quadrature if self.settings.stepper == EXPLICIT else None,
                contacts=self.settings.method == STEPS,
            ),
        )


class CompiledRuns:
    """Runs of one model, and the arrays that its compiled steps work on.

    Args:
        task: What the steps are made of.
        dynamics: The tapes of the steps.
        rollout: The compiled steps.
        members: Numbers of these runs among all of the call.
        start: q and nu, (runs, size) each; other buffers of the state to start with, by name.
        p: Free parameters, (size,) or (runs, size).
        given: Arrays that the steps read and Python changes in between, and numbers, by name.

    Attributes:
        buffers: State (runs, size), and what the steps read, (runs, size) or (size,) if shared.
        tables: Rows of numbers, such as samples of the input.
        begun: Mean time at the start of the runs [s].
        summary: How many runs have which status, once all have ended; None until then.
    """

    resident = False  # whether Python leaves the state alone between steps
    regrouped = False  # whether runs share vectors with those that have as many steps left

    def __init__(
        self,
        task: Task,
        dynamics: Dynamics,
        rollout: Any,
        members: Numbers,
        start: Mapping[str, Array],
        p: Array | None,
        given: Mapping[str, Array | float],
    ) -> None:
        self.model, self.plan, self.settings = task.model, task.plan, task.settings
        self.task, self.dynamics, self.rollout = task, dynamics, rollout
        self.members, self.p = members, p
        self.count = len(members)
        self.summary: Summary | None = None
        self.tables: dict[str, Array] = {}
        self.breaks: BreakTable | None = None
        if dynamics.reads_breaks:
            span = task.settings.t0, task.settings.t_end
            self.breaks = break_table(
                task.model,
                dynamics,
                span,
                p,
                task.plan.gains,
                refuse=task.settings.jumps == "refuse",
            )
            self.tables["breaks"] = self.breaks.rows
            start = {**start, "segment": self.breaks.past(start.get("t", task.settings.t0))}
        self.buffers = self._make_buffers(start, given)
        if task.plan.sampled is not None:
            self.tables["samples"] = task.plan.sampled.table

    def _make_buffers(
        self, start: Mapping[str, Array], given: Mapping[str, Array | float]
    ) -> MutableMapping[str, Array]:
        program = self.rollout.program
        state: dict[str, Any] = {"t": self.settings.t0, **start}
        t = state["t"]
        self.begun = float(t) if np.ndim(t) == 0 else float(np.mean(t))
        buffers = self.rollout.new_state(self.count, state, resident=self.resident)
        known: dict[str, Any] = self.settings.numbers() | {"p": self.p, "u": self.plan.constant}
        known["gains"] = self.plan.gains
        if self.plan.sampled is not None:
            known |= self.plan.sampled.numbers()
        if self.task.log is not None and self.task.log.grid is not None:
            known |= self.task.log.grid.numbers()
        known |= {**self.dynamics.numbers, **given}
        for name in program.given:
            value = known[name]
            array = np.asarray(value if np.ndim(value) else [value], dtype=float)
            if self.settings.place.target == "cpu":
                array = np.ascontiguousarray(array)
            if name not in given:
                array = array.view()
                array.setflags(write=False)  # carried to a GPU once
            buffers[name] = array
        return buffers

    def conditions(self, runs: Any, t: Any = None) -> Conditions:
        """Time and parameters of one run or of several; the present time unless given."""
        now = self.buffers["t"][runs, 0] if t is None else t

        def own(array: Array | None) -> Array | None:
            return array if array is None or array.ndim == 1 else array[runs]

        return Conditions(now, own(self.p), own(self.plan.gains))

    def begin_slice(self) -> int:
        """Prepare the next slice; returns its number of steps, zero if any number will do.

        Tables may have been replaced where it is not zero.
        """
        return 0

    def first_budget(self, operations: int) -> int:
        """Choose the number of steps of the first slice by the operations of the model."""
        groups = 1 if self.count == 1 else -(-self.count // self.rollout.lanes)
        return max(1, int(FIRST_SLICE / (groups * (100 + operations))))


class Session:
    """Progress, Ctrl-C and the clock of one call; it advances compiled steps in slices.

    Inside a `with`, Ctrl-C ends `advance` after a slice, when all numbers are consistent. Where
    nothing keeps results yet, it becomes `Interrupted` without one.

    Args:
        label: What is being done, for the progress bar.
        settings: Whose duration is the whole of the work.
        count: How many runs there are.
        progress: Show a bar; unless given, after a second on a terminal.
    """

    def __init__(
        self, label: str, settings: Settings, count: int, progress: bool | None = None
    ) -> None:
        self._settings = settings
        self._count, self._done = max(count, 1), 0.0  # runs, and how many of them are done
        self._before, self._part = 0.0, 1.0
        self._bar, self._interrupt = Progress(label, progress), Interrupt()
        self._stack = ExitStack()
        self._started = time.perf_counter()
        self.interrupted = False

    def __enter__(self) -> Session:
        self._stack.enter_context(self._bar)
        self._stack.enter_context(self._interrupt)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, trace)
        self.interrupted |= self._interrupt.pressed
        if isinstance(error, KeyboardInterrupt):
            raise Interrupted(None) from error

    def begin(self, count: int, before: float, part: float) -> None:
        """Continue with other runs of the same call.

        Args:
            count: How many.
            before: Part of the work that is done already, 0 to 1.
            part: Part of the work that these runs are.
        """
        self._count, self._done = max(count, 1), 0.0
        self._before, self._part = before, part

    def beside(self, count: int) -> Session:
        """Return a session of other runs of this call, for another thread; it shows nothing."""
        other = Session("", self._settings, count, False)
        other._interrupt = self._interrupt
        return other

    @property
    def done(self) -> float:
        """How many runs are done; those under way count in part."""
        return self._done

    def check(self) -> None:
        """Raise `KeyboardInterrupt` if Ctrl-C was pressed."""
        self._interrupt.check()

    def show(self, share: float, label: str | None = None) -> None:
        """Show the share of the work that is done, 0 to 1, and what is being done now."""
        self._bar.update(share, label)

    @contextmanager
    def keep_results(self) -> Iterator[None]:
        """End the body of a `with` at Ctrl-C, and continue after it."""
        try:
            yield
        except KeyboardInterrupt:
            self.interrupted = True

    @property
    def seconds(self) -> float:
        """Time since the call began [s]."""
        return time.perf_counter() - self._started

    def unguarded(self, function: Callable[..., Any]) -> Any:
        """Wrap a function of the user so that Ctrl-C acts at once inside it."""
        return self._interrupt.unguarded(function)

    def advance(
        self,
        runs: CompiledRuns,
        budget: int,
        after: Callable[[], bool] | None = None,
        before: Callable[[], None] | None = None,
    ) -> None:
        """Advance runs slice by slice until none is left.

        Args:
            runs: Their buffers and steps.
            budget: Steps of the first slice; later ones are as long as `SLICE` allows.
            after: Called after every slice; returns whether any run is left. Without it the
                buffers are not read in between, and a GPU keeps them until the end.
            before: Called before every step, for which slices are one step long.
        """
        first = runs.begin_slice()
        budget = first or budget
        steps = runs.rollout.bind(runs.buffers, runs.tables, resident=after is None)
        done, begun = self._done, self._share(runs.begun)
        left = True
        self._interrupt.check()  # starts and compilations may have taken long
        try:
            while left:
                began = time.perf_counter()
                if before is None:
                    steps(budget, self._settings.threads)
                else:
                    _step_by_step(steps, budget, before, runs.buffers["status"])
                part = REGROUPED if runs.regrouped else 1.0
                budget = _next_budget(budget, (time.perf_counter() - began) / part)
                if after is None:
                    summary = steps.summary()
                    left, now = summary.running > 0, summary.time
                    if runs.regrouped and left:
                        budget = max(budget, LEAST_BUDGET)
                        steps.regroup()
                else:
                    left, t = after(), runs.buffers["t"]
                    now = t.item() if t.size == 1 else float(t.mean())
                self._interrupt.check()
                self._done = done + runs.count * (self._share(now) - begun)
                self._bar.update(self._before + self._part * self._done / self._count)
                if first and left:
                    budget = runs.begin_slice()
                    steps = runs.rollout.bind(runs.buffers, runs.tables)
            if after is None:
                runs.summary = summary
        finally:
            steps.fetch()  # what is elsewhere

    def _share(self, time: float) -> float:
        """Part of a run that is done at a time."""
        return abs(time - self._settings.t0) / abs(self._settings.duration)

    def deliver(self, result: Any, on_interrupt: str, kept: str = "") -> Any:
        """Return the result of the call.

        Args:
            result: What was computed.
            on_interrupt: What Ctrl-C does: "raise" or "return".
            kept: Where else the result is kept, for the error's text.

        Raises:
            Interrupted: after Ctrl-C, if that was asked for; it carries the result.
        """
        if self.interrupted and on_interrupt == "raise":
            raise Interrupted(result, kept)
        return result


def _step_by_step(
    steps: Callable[[int, int], None], budget: int, before: Callable[[], None], status: Array
) -> None:
    """Take steps until a run stops or a slice is over, and call a function before each."""
    end, flags = time.perf_counter() + SLICE, status[:, 0]
    for _ in range(budget):
        before()
        steps(1, 1)
        if any(flags.tolist()) or time.perf_counter() > end:
            return


def check_on_interrupt(verb: str, given: Any) -> None:
    """Check the choice of what Ctrl-C does."""
    if not isinstance(given, str) or given not in ON_INTERRUPT:
        raise UnknownName(f"{verb}(on_interrupt=...)", "choice", given, ON_INTERRUPT)


def _next_budget(budget: int, seconds: float) -> int:
    if seconds < SLICE / 2:
        return min((4 if seconds < SLICE / 8 else 2) * budget, MAX_BUDGET)
    return max(1, budget // 2) if seconds > 2 * SLICE else budget
