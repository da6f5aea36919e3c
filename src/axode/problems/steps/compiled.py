"""Compile the steps of a model for the CPU or for a GPU, each once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from axode.codegen.tape.operations import Array
from axode.codegen.tape.program import Program
from axode.codegen.tape.rewriting import FusionLimits, extract_numbers, fuse
from axode.codegen.tape.switching import Switches, find_switches, places_tape
from axode.codegen.tape.tape import Tape
from axode.codegen.targets.cpu_rollout import Rollout
from axode.errors import InvalidArgument, NotApplicable, UnknownName
from axode.model.conditions import MOMENTUM, motion_switches, require_momentum
from axode.model.function_source import JACOBIAN, check_precision
from axode.model.metadata import Facts
from axode.model.model import Model
from axode.model.model_parts import facts_of, function_tape, library_of, require_ideal
from axode.numerics.tolerances import SUM_ROUNDING
from axode.problems.inputs.events import event_tape
from axode.problems.inputs.inputs import InputPlan, plan_input
from axode.problems.inputs.laws import model_under
from axode.problems.inputs.tracing import MAX_NUMBERS
from axode.problems.steps.adaptive import Gathering
from axode.problems.steps.audit import audited
from axode.problems.steps.break_times import break_table, sample_switches
from axode.problems.steps.explicit import adaptive_explicit_program, fixed_step_program
from axode.problems.steps.rates import INSIDE, Dynamics
from axode.problems.steps.tableaus import DOP853, DOPRI5, EXPLICIT_METHODS, RK4

if TYPE_CHECKING:
    from axode.problems.steps.adaptive import Gathering
    from axode.problems.steps.moreau import ContactTapes
    from axode.problems.steps.rates import Dynamics
    from axode.results.columns import Event


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


TARGETS = ("cpu", "cuda")
MAX_STEPS_IN_SINGLE = 2**24  # beyond, whole numbers of single precision have gaps
MAX_SIZE_ON_GPU = 26  # of a state whose matrix fits into the memory of one thread
ENERGY = "energy"  # function of a model
# functions of a model that are forces, with their signs in M d(nu)/dt
CONTACT_FORCES = {
    "bias": -1.0,
    "potential_force": 1.0,
    "dissipative_force": 1.0,
    "input_force": 1.0,
}
CONTACT_FUNCTIONS = {"contact_rows", "mass_matrix", "rates", *CONTACT_FORCES}
EXPORTED = ("rk4", "dopri5")  # methods of kernels that can be exported, explicit ones
INSIDE_IN_SINGLE = 0.1  # of half a step: seven digits of time do not resolve less
INWARDS_IN_SINGLE = 5e-7  # of the time: the same of breaks
CHECKED_TIME = 10.0  # [s] of prescribed motions that are exported
KEPT = ("p", "gains")  # arguments of tapes that stay during a run

ADJOINTS = {"rate": "state_rate_adjoint", "projection": "projection_adjoint"}
OPERATIONS_PER_LOGGED = 95.0  # a number of the log takes as long to write and read as these
MAX_PROGRAMS = 32  # compiled programs that are kept of a model, those that were used last
MAX_NUMBERS_ON_GPU = 16  # of a traced function that are arguments: they are kept in registers

_TAPES: WeakKeyDictionary[Model, dict[str, Tape]] = WeakKeyDictionary()
_ADJOINTS: WeakKeyDictionary[Model, dict[str, Tape]] = WeakKeyDictionary()
_LOCK = threading.RLock()  # chunks of a sweep are computed by several threads
_ROLLOUTS: WeakKeyDictionary[Model, dict[Any, Any]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Place:
    """Where steps are computed, and in which numbers.

    Attributes:
        target: "cpu" or "cuda".
        precision: "float64" or "float32".
        devices: Numbers of the GPUs that share the runs; the current one if there are none.
    """

    target: str = "cpu"
    precision: str = "float64"
    devices: tuple[int, ...] = ()

    @classmethod
    def of(cls, model: Model, target: str | None, precision: str | None) -> Place:
        """Choose what was asked for, or where the model's own functions run."""
        own = "cuda" if model.target == "cuda" else "cpu"
        target = own if target is None else target
        name, colon, numbers = str(target).partition(":")
        if not isinstance(target, str) or name not in TARGETS or (colon and name != "cuda"):
            raise UnknownName("axode", "target", target, TARGETS)
        target, devices = name, _devices(numbers) if colon else ()
        if precision is None:
            precision = library_of(model).precision if target == "cuda" else "float64"
        check_precision(precision, target)
        return cls(target, precision, devices)

    @property
    def single(self) -> bool:
        """True if numbers have single precision."""
        return self.precision == "float32"

    @property
    def max_numbers(self) -> int:
        """Most numbers of a traced function that are arguments of its code."""
        return MAX_NUMBERS_ON_GPU if self.target == "cuda" else MAX_NUMBERS

    def check(self, method: str, steps: int) -> None:
        """Check that single precision suffices for the method and the number of steps."""
        if not self.single:
            return
        if method not in EQUAL_STEPS:
            raise InvalidArgument(
                f"precision: {method} needs float64 for its tolerances; use method='rk4' with a "
                "step, such as step=1e-3, or precision='float64'"
            )
        if steps > MAX_STEPS_IN_SINGLE:
            raise InvalidArgument(
                f"precision: float32 counts {MAX_STEPS_IN_SINGLE} steps at most, these are "
                f"{steps}; use longer steps, or precision='float64'"
            )


def _devices(numbers: str) -> tuple[int, ...]:
    """Read numbers of GPUs, such as "0,1" or "all"."""
    from axode.runtime.device import cupy

    count = int(cupy().cuda.runtime.getDeviceCount())
    if numbers == "all":
        return tuple(range(count))
    parts = numbers.split(",")
    if not all(part.isdecimal() and int(part) < count for part in parts):
        raise InvalidArgument(
            f"target 'cuda:{numbers}': expected 'cuda:all' or numbers of GPUs such as 'cuda:0,1'; "
            f"this machine has {count}, counted from 0"
        )
    return tuple(dict.fromkeys(map(int, parts)))


def can_take_over(model: Model, place: Place, d: Dynamics) -> bool:
    """Check whether implicit steps can take over; files may lack what they need."""
    return JACOBIAN in model.functions and is_available(place, IMPLICIT, d)


def is_available(place: Place, method: str, d: Dynamics) -> bool:
    """Check whether a method is available at a place."""
    return method != IMPLICIT or place.target == "cpu" or d.n_k <= MAX_SIZE_ON_GPU


def tape_of(model: Model, name: str) -> Tape:
    """Return a tape of the model, made once."""
    tapes = _TAPES.setdefault(model, {})
    if name not in tapes:
        tapes[name] = function_tape(model, name)
    return tapes[name]


def adjoints_of(model: Model) -> dict[str, Tape]:
    """Return the gradients of rate and projection that the equations give, if the model has them.

    Models read from files have none, unless they were saved along.
    """
    known = _ADJOINTS.get(model)
    if known is None:
        known = _ADJOINTS[model] = {}
        for part, name in ADJOINTS.items():
            with suppress(NotApplicable):
                known[part] = tape_of(model, name)
    return known


@dataclass(frozen=True)
class StepOptions:
    """What steps do besides integrating.

    Attributes:
        single: Whether it is for single precision.
        stiffness: Whether explicit steps at the limit of stability are counted.
        max_numbers: Most numbers of the input and of the events that become arguments; the code
            holds all of them unless given.
        log: Whether accepted steps are logged.
        logged_stages: How many stages have their rates in the log, if these are long to compute.
        interleaved: Whether the log holds each number of a group of runs side by side.
        grid: Whether steps end at the times of a grid.
        breaks: Whether they end where any of these functions switches, at times of a table.
        gathered: Functions that are gathered along the runs; they may switch, too.
        quadrature: Rate of a number whose error adaptive steps limit.
        contacts: Whether steps go through contacts that slip and lift.
    """

    single: bool = False
    stiffness: bool = False
    max_numbers: int = 0
    log: bool = False
    logged_stages: int = 0
    interleaved: bool = False
    grid: bool = False
    breaks: bool = False
    gathered: Sequence[Tape | None] = ()
    quadrature: Tape | None = None
    contacts: bool = False


PLAIN = StepOptions()


def dynamics_of(
    model: Model,
    plan: InputPlan,
    watches: Sequence[Event],
    speeds: Sequence[str] | None = None,
    options: StepOptions = PLAIN,
) -> Dynamics:
    """Collect the tapes of a model's steps.

    Args:
        model: What moves.
        plan: Its input.
        watches: Events to locate.
        speeds: What events call nu, where the model has other independent speeds.
        options: What the steps do besides.
    """
    if not options.contacts:
        require_ideal("this way of integrating", model)
    facts = facts_of(model)
    can_open = bool(facts.residual_rows or facts.quaternions)
    pivots, rate = tape_of(model, "pivots"), tape_of(model, "state_rate")
    free = bool(facts.parameters) and not facts.fixed
    numbers: dict[str, Array] = {}
    stages = options.logged_stages
    watched = event_tape(model, watches, speeds)
    switches, jump = (
        _switches(model, plan, watched, *options.gathered) if options.breaks else (),
        None,
    )
    if facts.driven and switches:
        with suppress(
            NotApplicable
        ):  # of files that lack it: `break_table` reports where it matters
            jump = tape_of(model, MOMENTUM), tape_of(model, "energy")

    def lifted(tape: Tape | None) -> Tape | None:
        if tape is None:
            return None
        made = extract_numbers(tape, options.max_numbers)
        numbers.update(made.numbers)
        return made.tape

    return Dynamics(
        len(facts.coordinates),
        len(facts.independent),
        len(facts.inputs),
        rate,
        projection=tape_of(model, "projection") if can_open else None,
        pivots=pivots if pivots.outputs[0].size else None,
        input=lifted(plan.tape),
        events=lifted(watched),
        directions=tuple(w.direction for w in watches),
        given=({"p": len(facts.parameters)} if free else {})
        | ({} if plan.gains is None else {"gains": plan.gains.shape[-1]}),
        numbers=numbers,
        samples=None if plan.sampled is None else plan.sampled.between,
        leaning=len(facts.leaning),
        quaternions=tuple(map(tuple, facts.quaternions)),
        stiffness=options.stiffness,
        log=options.log,
        logged_stages=stages if stages and is_long(rate, facts) else 0,
        interleaved=options.interleaved,
        grid=options.grid,
        inside=INSIDE_IN_SINGLE if options.single else INSIDE,
        switches=switches,
        inwards=INWARDS_IN_SINGLE if options.single else SUM_ROUNDING,
        jump=jump,
        update=None if plan.updates is None else plan.updates.tape,
        periods=() if plan.updates is None else plan.updates.periods,
        quadrature=lifted(options.quadrature),
        contacts=_contact_tapes(model) if options.contacts else None,
    )


def _contact_tapes(model: Model) -> ContactTapes:
    """Collect what steps through contacts need."""
    from axode.problems.steps.moreau import ContactTapes

    forces = tuple((sign, tape_of(model, name)) for name, sign in CONTACT_FORCES.items())
    potential = tape_of(model, "potential_force")
    rows, mass, rates = (tape_of(model, name) for name in ("contact_rows", "mass_matrix", "rates"))
    momentum = tape_of(model, MOMENTUM) if facts_of(model).driven else None
    return ContactTapes(
        facts_of(model).contact_table, rows, mass, forces, rates, potential, momentum
    )


def _switches(model: Model, plan: InputPlan, *others: Tape | None) -> tuple[Switches, ...]:
    """Collect what switches by time alone in the motion, in the input and in other functions."""
    found = (find_switches(tape, KEPT) for tape in (plan.tape, *others) if tape is not None)
    samples = () if plan.updates is None else (sample_switches(plan.updates.periods),)
    return *(some for some in found if some is not None), *motion_switches(model), *samples


def log_width(model: Model, stages: int) -> int:
    """Return how many numbers of a step are logged for the way back."""
    facts = facts_of(model)
    size = len(facts.coordinates) + len(facts.independent)
    return (1 + stages * is_long(tape_of(model, "state_rate"), facts)) * size + 2


def is_long(rate: Tape, facts: Facts) -> bool:
    """Return whether rates take longer to compute again than to write and read."""
    size = len(facts.coordinates) + len(facts.independent)
    return rate.n_operations > OPERATIONS_PER_LOGGED * size


def rollout_of(model: Model, method: str, d: Dynamics, place: Place, *, alike: bool = False) -> Any:
    """Return the compiled steps of a model, made once; see `compiled`."""
    if not is_available(place, method, d):
        raise NotApplicable(
            f"method='{method}' keeps a matrix of {d.n_k} x {d.n_k} numbers for every run, and on "
            f"a GPU at most {MAX_SIZE_ON_GPU} x {MAX_SIZE_ON_GPU}; use target='cpu' or "
            "method='dopri5'"
        )
    tapes = (None if tape is None else tape.digest for tape in (d.input, d.events, d.quadrature))
    key = (
        method,
        d.samples,
        d.directions,
        d.stiffness,
        d.log,
        d.logged_stages,
        d.interleaved,
        d.grid,
        *d.breaks_key,
        alike,
        *tapes,
    )
    return compiled(model, key, place, lambda: program_of(model, method, d), alike=alike)


def program_of(
    model: Model, method: str, d: Dynamics, gathering: Gathering | None = None
) -> Program:
    """Make the steps of a model, which save states or gather numbers."""
    slopes = None if method in (*EXPLICIT_METHODS, *EQUAL_STEPS) else tape_of(model, JACOBIAN)
    program = PROGRAMS[method](replace(d, rate_jacobian=slopes), gathering)
    return audited(program, d, tape_of(model, ENERGY)) if is_audited(model) else program


def is_audited(model: Model) -> bool:
    """Return whether a model has the function of energy; one from a file may lack it."""
    return ENERGY in model.functions


def compiled(
    model: Model,
    key: Any,
    place: Place,
    program: Callable[[], Program],
    *,
    alike: bool = False,
    limits: FusionLimits | None = None,
) -> Any:
    """Compile a program of a model to a `Rollout` or `KernelRollout`, once for a key.

    The last `MAX_PROGRAMS` are kept; machine code of others is unloaded.

    Args:
        model: What moves.
        key: What the program depends on besides the model.
        place: Where it runs.
        program: Makes it.
        alike: Whether a run must have the same bits whatever others it is computed with.
        limits: How much of it is joined.
    """
    with _LOCK:
        known = _ROLLOUTS.setdefault(model, {})
        key = (place, key)
        made = known.pop(key, None)
        if made is None and place.target == "cuda":
            from axode.codegen.targets.gpu_rollout import KernelRollout

            whole = program() if limits is None else fuse(program(), limits)
            made = KernelRollout(whole, place.precision, place.devices)
        elif made is None:
            made = Rollout(program(), alike=alike, limits=limits)
        known[key] = made  # the last one
        for oldest in list(known)[:-MAX_PROGRAMS]:
            known.pop(oldest, None)
        return made


def check_exported_motion(model: Model) -> None:
    """Check that the prescribed motions of a model can be exported: no position jumps.

    That is looked at up to `CHECKED_TIME`, at the default parameters.

    Raises:
        InvalidArgument: if one jumps.
        NotApplicable: if the model's file lacks what jumps of rates need.
    """
    switches = motion_switches(model)
    require_momentum(model, switches)
    if switches:
        d = dynamics_of(model, plan_input(model, None), (), options=StepOptions(breaks=True))
        break_table(model, d, (0.0, CHECKED_TIME), model.parameter_vector(), None)


def rollout_program(model: Model, method: str, given: Any, *, single: bool = False) -> Program:
    """Make a program of whole runs of a model, for kernels that are exported.

    Args:
        model: What moves.
        method: "rk4" or "dopri5".
        given: Its input, as `simulate` takes it; without one it is a buffer `u`.
        single: Whether it is for single precision.
    """
    if method not in EXPORTED:
        raise UnknownName("axode", "method", method, EXPORTED)
    model = model_under(given, model)
    plan = plan_input(model, given)
    if plan.callback is not None:
        raise InvalidArgument("input: a Callback runs in Python and cannot be exported")
    d = dynamics_of(model, plan, (), options=StepOptions(single=single, breaks=True))
    check_exported_motion(model)
    if d.reads_breaks:
        d = replace(d, places=places_tape(d.switches))
    return METHODS[method](d)
