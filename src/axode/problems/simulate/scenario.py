"""Scenario: what runs, described once; checked, traced and started once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from types import NoneType
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from axode.argument_types import check_arguments, check_options
from axode.errors import InvalidArgument, NotApplicable, UnknownName
from axode.model.memory import ModelWithMemory
from axode.model.model import Model
from axode.model.model_parts import facts_of, memory_of, model_on_cpu
from axode.numerics.tolerances import OPEN
from axode.problems.arguments import (
    StateArgument,
    checked_parameters,
    number,
    read_state,
    require_model,
    start_time,
)
from axode.problems.assemble.start_warnings import collect_warnings, warn_of_start
from axode.problems.inputs.events import check_events
from axode.problems.inputs.fingerprints import recall
from axode.problems.inputs.inputs import InputPlan, plan_input
from axode.problems.inputs.laws import Law, model_under
from axode.problems.runs.settings import Settings
from axode.problems.simulate.starts import (
    DEEPEST,
    Starts,
    find_starts,
    refuse_sunk,
    require_runs,
    shared_batch,
    take_first_samples,
)
from axode.problems.steps.compiled import AUTOMATIC, STEPS, Place

if TYPE_CHECKING:
    from axode.results.columns import Event

Array = npt.NDArray[np.float64]
IDEAL = "ideal"
EVENTS = "events"
DEEP = OPEN  # [m or rad] below the ground that runs from event to event may be
CONTACT_CHOICES = (AUTOMATIC, IDEAL, EVENTS, STEPS)
_EMPTY: dict[str, Any] = {"events": (), "singular": "stop", "jumps": "impulse"}
_DEPENDS = {  # what is computed once, and the options that it depends on
    "state": {"start"},
    "t0": {"start", "t0"},
    "p": {"parameters"},
    "events": {"events"},
    "plan": {"input"},
    "starts": {"start", "t0", "parameters", "input", "target", "precision"},
}


class RunOptions(TypedDict, total=False):
    """What a run takes besides its model and its duration, as keywords of verbs.

    Attributes:
        start: State to start from, by name (arrays make a batch of runs), as arrays `q` or
            `(q, nu)` with any number of runs, as a `State`, as `run.at(t)`, or a `Trajectory` to
            continue; home at rest unless given.
        input: Numbers or formulas of time and state by name; a function of the state, traced once,
            or a `Law` of it with gains; a `Trajectory`, such as one of `inverse_dynamics`,
            interpolated; `Sampled(...)`; `Callback(...)`. Motor limits are kept.
        parameters: Values by name instead of the defaults; arrays make a batch of runs.
        events: `Event` objects: crossings to locate, perhaps to stop at.
        backwards: Whether the duration is negative and the run goes backwards in time; a negative
            one is refused without it.
        t0: Time at the start [s]: that of a trajectory, a sample or a `State`, and zero for other
            starts, unless given.
        contacts: How contacts with friction, joints that rub, and stops are met: "events" goes
            with adaptive steps from one change to the next, which `run.contact_events` lists;
            "steps" takes steps of one length `step` through all that sticks, slips, lifts and
            lands; "ideal" leaves slip, lift-off, stops and dry friction out. "auto" chooses events
            for one run, with steps where these crowd or find no modes, which `info["stepped"]`
            lists, and steps for batches, GPUs, sampled inputs and where `step` is given.
        method: "auto" begins with an explicit method, "dop853" where `rtol` is 1e-8 or less and
            "dopri5" elsewhere and on GPUs, and continues with "radau9" (implicit, adaptive) where
            stiffness keeps explicit steps short, which `info` reports; or one of these throughout,
            "rodas5p" (implicit, for loose tolerances), or "rk4" (explicit, fixed steps).
        step: Length of the steps of rk4, or through contacts [s].
        rtol, atol: Tolerance of the motion, relative to each coordinate and speed and absolute
            (not rk4). A step may make a tenth of this error, so that many steps stay near it; over
            long or sensitive motions errors still grow.
        singular: Where the constraints lose rank: "stop", or "pass" to let momentum carry the
            motion across smoothly; `info["passed"]` lists where that was done.
        jumps: Where the rate of a prescribed motion jumps: "impulse", which `info["impulses"]`
            lists, or "refuse".
        threads: How many threads share a batch.
        target: Where the steps are computed, "cpu" or "cuda"; where the model's functions run
            unless given.
        precision: Precision of the steps, "float64" or, on a GPU with rk4, "float32"; the model's
            unless given.
    """

    start: Any
    input: Any
    parameters: Mapping[str, npt.ArrayLike] | None
    events: Event | Sequence[Event]
    backwards: bool
    t0: float | None
    contacts: str
    method: str | None
    step: float | None
    rtol: float
    atol: float
    singular: str
    jumps: str
    threads: int | None
    target: str | None
    precision: str | None


class Scenario:
    """What runs: a model, for how long, from where, under which inputs, and how it is integrated.

    `simulate`, `sweep`, `Cost` and `page` take one in place of a model and a duration. What is in
    it is checked when it is first needed, and once: the law is traced, loops are closed and steps
    are compiled for the first run, and later runs only take their steps. So a law and what it
    reads must not change; make another scenario, or a `Law` with gains.

    Args:
        model: What moves.
        duration: How long [s]; negative with `backwards=True`.
        options: Those of `RunOptions`.

    Raises:
        InvalidArgument: for anything but a model, and for unknown options and wrong types.
    """

    _warnings: Sequence[str] = ()

    def __init__(self, model: Model, duration: float, **options: Unpack[RunOptions]) -> None:
        require_model("Scenario", model, contacts=True)
        check_arguments(Scenario.__init__, {"model": model, "duration": duration})
        check_options("Scenario", RunOptions, options)
        self._given = model
        self.place = Place.of(model, options.get("target"), options.get("precision"))
        self.duration = number("duration", duration)
        check_direction("duration", self.duration, options.get("backwards", False))
        copied: Any = {k: dict(v) if type(v) is dict else v for k, v in options.items()}
        self.options: RunOptions = copied
        # starts and records are computed on the CPU
        self.model = model_under(self.input, model_on_cpu(model))
        self._check_memory()
        self._settings: dict[Any, Settings] = {}

    @classmethod
    def read(
        cls,
        verb: str,
        what: Model | Scenario,
        duration: float | None,
        options: RunOptions,
        *,
        refused: Sequence[str] = (),
        own: Callable[..., Any] | None = None,
    ) -> Scenario:
        """Return the scenario that a verb was given, changed by its other arguments.

        Args:
            verb: Name of the verb.
            what: A scenario, or a model.
            duration: How long [s].
            options: Other arguments of the verb.
            refused: Options that the verb does not take.
            own: The verb, whose own keywords errors list too.

        Raises:
            InvalidArgument: for a model without a duration.
            NotApplicable: for options that the verb does not take.
        """
        known = verb in ("simulate", "sweep")  # contacts
        if isinstance(what, Scenario):
            require_model(verb, what.model, contacts=known)
            made = what.changed(duration, **options)
        else:
            require_model(verb, what, contacts=known)
            if duration is None:
                check_options(verb, RunOptions, options, own)
                raise InvalidArgument(f"{verb}: a model needs a duration [s], {verb}(model, 5.0)")
            made = cls._known(verb, what, duration, options, own)
        if verb == "sweep":  # whose values need not fit together as a batch
            if made.options.get("contacts", AUTOMATIC) not in (AUTOMATIC, STEPS):
                raise NotApplicable(f"contacts: sweep takes '{STEPS}'; simulate knows the others")
            if facts_of(made.model).contact_table and made.options.get("contacts") != STEPS:
                made = made.changed(contacts=STEPS)
        for name in refused:
            if made.options.get(name, _EMPTY[name]) not in (None, _EMPTY[name]):
                raise NotApplicable(f"{verb} takes no {name}; simulate does")
        return made

    @classmethod
    def _known(
        cls, verb: str, model: Model, duration: float, options: RunOptions, own: Any
    ) -> Scenario:
        """Return one that was made before of the same, checked and traced, or make it."""

        def make() -> Scenario:
            check_options(verb, RunOptions, options, own)
            return cls(model, duration, **options)

        made = recall(memory_of(model), (duration, options), make)
        made.warn_again()  # where its starts are known
        return made

    def changed(self, duration: float | None = None, **options: Unpack[RunOptions]) -> Scenario:
        """Return the same with another duration or other options; itself if nothing changes.

        What does not depend on the changed options is not computed again.
        """
        if duration is None and not options:
            return self
        known: Any = {**self.options, **options}
        if options.get("method") == "rk4" or options.get(
            "step"
        ):  # rk4 has no use for tolerances of the scenario
            known = {k: v for k, v in known.items() if k in options or k not in ("rtol", "atol")}
        made = Scenario(self._given, self.duration if duration is None else duration, **known)
        for name, depends in _DEPENDS.items():
            if name in vars(self) and not depends & options.keys():
                vars(made)[name] = vars(self)[name]
        old, new = self.input, made.input
        laws = isinstance(old, Law) and isinstance(new, Law) and old.function is new.function
        if laws and "plan" in vars(self) and old.gains and old.key == new.key:
            vars(made)["plan"] = replace(self.plan, gains=new.array())
        return made

    def __repr__(self) -> str:
        listed = "".join(f", {name}" for name in self.options)
        return f"Scenario('{self.model.name}', {self.duration:g} s{listed})"

    def __getstate__(self) -> dict[str, Any]:
        """Return what was given, without anything derived from it."""
        kept = ("_given", "model", "duration", "options", "place")
        return {name: vars(self)[name] for name in kept} | {"_settings": {}}

    def _check_memory(self) -> None:
        """Refuse what laws that remember cannot do."""
        if not isinstance(self.model, ModelWithMemory):
            return
        if self.options.get("singular", "stop") != "stop":
            raise NotApplicable(
                "singular: a law that remembers cannot be taken across a singular configuration; "
                "leave singular out, or give a law of the state alone"
            )
        if isinstance(self.input, Law) and self.input.periods and self.duration < 0:
            raise NotApplicable(
                "duration: a law that takes samples forgets what was before them, and runs "
                "forwards in time only"
            )

    @property
    def mechanism_model(self) -> Model:
        """The model as it was given, without the memory of a law."""
        return self._given

    @property
    def input(self) -> Any:
        """The input as it was given."""
        return self.options.get("input")

    @cached_property
    def contacts(self) -> str:
        """How contacts with friction, joints that rub, and stops are met.

        Raises:
            UnknownName: for another choice.
            NotApplicable: if the mechanism has none of them.
        """
        asked, table = self.options.get("contacts", AUTOMATIC), facts_of(self.model).contact_table
        if not isinstance(asked, str) or asked not in CONTACT_CHOICES:
            raise UnknownName("contacts=...", "choice", asked, CONTACT_CHOICES)
        if not table:
            if asked not in (AUTOMATIC, IDEAL):
                raise NotApplicable(
                    f"contacts: nothing of '{self.model.name}' slips, lifts, rubs or stops; give "
                    "its wheels friction=0.8, or leave contacts out"
                )
            return IDEAL
        if asked == AUTOMATIC:
            return EVENTS if self._suits_events else STEPS
        return asked

    @property
    def _suits_events(self) -> bool:
        """Return whether contacts can be followed from event to event."""
        plan, shapes = self.plan, list(self.state.shapes)
        shapes += [plan.batch] if self.p is None else [plan.batch, self.p.shape[:-1]]
        simple = plan.callback is None and plan.sampled is None and plan.updates is None
        shorter = self.options.get("step") is None and self.duration > 0
        alone = not any(shapes) and self.place.target == "cpu"
        return simple and shorter and alone and self.options.get("singular", "stop") == "stop"

    def _check_steps(self) -> None:
        """Check that options are those of steps through contacts."""
        for name in ("rtol", "atol"):
            if name in self.options:
                raise InvalidArgument(
                    f"{name}: steps through contacts have one length; give step, such as step=1e-3"
                )
        if self.options.get("method") not in (None, AUTOMATIC):
            raise InvalidArgument(
                f"method: {self.options['method']} knows no contacts that slip and lift; leave it "
                "out"
            )
        if self.place.target != "cpu":
            raise NotApplicable(
                "target: steps through contacts have not been tried on a GPU; use target='cpu'"
            )
        if self.duration < 0:
            raise NotApplicable(
                "duration: friction and impacts have no way back; runs with contacts go forwards "
                "in time only"
            )

    @cached_property
    def state(self) -> StateArgument:
        """The start as it was given, checked."""
        return read_state(self.model, self.options.get("start"), "start")

    @cached_property
    def t0(self) -> float:
        """Time at the start [s]."""
        return start_time(self.options.get("t0"), self.state)

    @cached_property
    def p(self) -> Array | None:
        """Free parameters, (*batch, size)."""
        return checked_parameters(self.model, self.options.get("parameters"))

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """Zero crossings to locate."""
        return check_events(self.model, self.options.get("events", ()))

    @cached_property
    def plan(self) -> InputPlan:
        """The input, traced; gains of a `Law` are arguments of its tape."""
        return recall(
            memory_of(self.model),
            self.input,
            lambda: plan_input(self.model, self.input, gains=True),
        )

    def settings(
        self, method: str = AUTOMATIC, *, t0: float | None = None, save_every: float | None = None
    ) -> Settings:
        """How to integrate.

        Args:
            method: The method unless the scenario has one.
            t0: Time at the start, where that of the scenario is not known [s].
            save_every: Time between samples [s].
        """
        given, t0 = self.options, self.t0 if t0 is None else t0
        key = (method, t0, save_every) if type(save_every) in (NoneType, float) else None
        if key in self._settings:
            return self._settings[key]
        ignored = [name for name in ("rtol", "atol") if name in given]
        if self.contacts == STEPS:
            self._check_steps()
            method, ignored = STEPS, []
        if ignored and (given.get("method") or method) == "rk4":
            raise InvalidArgument(
                f"{ignored[0]}: rk4 takes steps of a fixed length; give step, or another method"
            )
        made = Settings(
            method if method == STEPS else given.get("method") or method,
            t0,
            self.duration,
            given.get("step"),
            save_every,
            given.get("rtol", 1e-10),
            given.get("atol", 1e-12),
            given.get("threads"),
            self.place,
            singular=given.get("singular", "stop"),
            jumps=given.get("jumps", "impulse"),
        )
        if key is not None:
            self._settings[key] = made
        return made

    @cached_property
    def starts(self) -> Starts:
        """Where the runs start.

        Raises:
            InvalidArgument: for a batch of no runs.
            LoopNotClosed: if no run has a start that closes the loops.
        """
        return self.starts_beside(())

    def starts_beside(self, others: tuple[int, ...]) -> Starts:
        """Return the starts of the runs, with a batch of the shape `others`, too."""
        batch = shared_batch(self.plan.batch, [others])
        given = self.state.shapes + ([] if self.p is None else [self.p.shape[:-1]])
        require_runs(shared_batch(batch, given))
        target = self.place.target
        with collect_warnings() as found:
            begun = find_starts(self.model, self.state, self.t0, self.p, batch, target=target)
            if self.contacts != IDEAL:
                deepest = DEEP if self.contacts == EVENTS else DEEPEST
                begun = refuse_sunk(self.model, begun, self.t0, deepest)
            begun = take_first_samples(self.plan.spread(begun.batch), begun, self.t0)
        begun.require_some()
        self._warnings = found
        self.warn_again()
        return begun

    def warn_again(self) -> None:
        """Warn of starts that differ from the request, as when they were found."""
        for text in self._warnings:
            warn_of_start(text)


def check_direction(argument: str, seconds: float, backwards: bool) -> None:
    """Refuse negative seconds that may be a slip, and positive ones that are called negative."""
    if seconds < 0 and not backwards:
        raise InvalidArgument(
            f"{argument}: {seconds:g} s is negative.\n"
            "  Remedy: a positive number of seconds; backwards=True runs back in time"
        )
    if seconds > 0 and backwards:
        raise InvalidArgument(
            f"backwards: the {argument} {seconds:g} s goes forwards.\n"
            f"  Remedy: a {argument} of {-seconds:g} s, or leave backwards out"
        )
