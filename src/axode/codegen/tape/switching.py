"""Find the times at which comparisons of a tape change, and kinks and steps of its functions.

Comparisons whose two sides depend on time and on numbers that a run keeps (parameters, gains) are
collected in a tape of *switches*: numbers that change their sign, or pass a whole number, where
something switches. Interval arithmetic of these numbers and of their slopes proves where nothing
switches and where one switch follows its slope; other intervals are halved. No pulse is too short
to be found where the arithmetic knows the functions; where it does not, intervals end at
`SAME_TIME`, or once there are `MAX_INTERVALS`. What switches without end, as `floor(1 / t)`, is
refused beyond a number of evaluations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from axode.codegen.tape.builder import TapeBuilder
from axode.codegen.tape.derivatives import changes_along
from axode.codegen.tape.formulas import Formula
from axode.codegen.tape.operations import ARITY, LEAVES, LOGICAL, MEANING, Array, Kind
from axode.codegen.tape.tape import Port, Tape
from axode.errors import InvalidArgument
from axode.numerics.tolerances import SAME_TIME

Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.intp]
TIME = "t"
MAX_INTERVALS = 1 << 16  # at a time of every run, before those that are left end as they are
EVALUATIONS = 1 << 25, 1 << 14  # to locate switches: of all runs, and more for every run
LEAST_EVALUATIONS = 4  # per switch
KEPT_TAPES = 256
SWITCHING = frozenset(
    (
        *(Kind.LT, Kind.LE, Kind.FMIN, Kind.FMAX, Kind.FABS, Kind.SIGN),
        *(Kind.COPYSIGN, Kind.FLOOR, Kind.CEIL, Kind.FMOD, Kind.REMAINDER),
    )
)
JUMPING = SWITCHING - {Kind.FMIN, Kind.FMAX, Kind.FABS} | {Kind.SELECT, Kind.ATAN2}
NEAR = 8.0  # spacings of floating-point times around the zero of a straight line


@dataclass(frozen=True)
class Switches:
    """What switches in some tapes.

    Attributes:
        tape: Time and what a run keeps to numbers that switch where they change their sign.
        whole: Which of them switch at every whole number instead.
    """

    tape: Tape
    whole: tuple[bool, ...]

    @property
    def kept(self) -> tuple[str, ...]:
        """Names of the arguments besides time."""
        return tuple(port.name for port in self.tape.inputs if port.name != TIME)

    @property
    def arguments(self) -> set[tuple[str, int]]:
        """Arguments besides time that it depends on, and their elements."""
        ports = [port.name for port in self.tape.inputs]
        rows = self.tape.operands[self.tape.kinds == Kind.INPUT]
        return {(ports[k], element) for k, element, _ in rows.tolist()} - {(TIME, 0)}


@lru_cache(maxsize=KEPT_TAPES)
def find_switches(
    tape: Tape,
    kept: tuple[str, ...],
    by: tuple[str, ...] = (TIME,),
    kinds: frozenset[Kind] | None = None,
) -> Switches | None:
    """Collect what switches by time alone.

    Args:
        tape: Whose comparisons are meant.
        kept: Names of arguments that stay as they are during a run.
        by: Names of the arguments by which it switches.
        kinds: Operations that count; all unless given.

    Returns:
        None if nothing does.
    """
    ports = {k: port for k, port in enumerate(tape.inputs) if port.name in (*by, *kept)}
    order = {k: n for n, k in enumerate(ports)}
    builder = TapeBuilder()
    known: list[int | None] = []  # instructions that depend on nothing else
    timed: list[bool] = []
    found: dict[tuple[int, bool], None] = {}
    for code, row in zip(tape.kinds.tolist(), tape.operands.tolist(), strict=True):
        kind = Kind(code)
        if kind == Kind.INPUT:
            own = row[0] in ports
            known.append(builder.input(order[row[0]], row[1]) if own else None)
            timed.append(own and ports[row[0]].name in by)
        elif kind == Kind.CONSTANT:
            known.append(builder.constant(float(tape.constants[row[0]])))
            timed.append(False)
        else:
            used = row[: ARITY[kind]]
            values = [known[v] for v in used]
            timed.append(any(timed[v] for v in used))
            counts = kinds is None or kind in kinds
            if (
                counts
                and kind == Kind.SELECT
                and tape.kinds[used[0]] not in LOGICAL
                and timed[used[0]]
            ):
                found |= dict.fromkeys(_switches_of(builder, Kind.NOT, values[:1]))
            if any(v is None for v in values):
                known.append(None)
                continue
            if counts and timed[-1] and not (kind == Kind.NOT and tape.kinds[used[0]] in LOGICAL):
                found |= dict.fromkeys(_switches_of(builder, kind, values))
            known.append(builder.apply(kind, *(v for v in values if v is not None)))
    found = {pair: None for pair in found if builder.value(pair[0]) is None}
    if not found:
        return None
    inputs = tuple(ports.values())
    results = Port("switches", (len(found),))
    made = Tape.build("switches", inputs, (results,), builder, [number for number, _ in found])
    return Switches(made, tuple(whole for _, whole in found))


def switches_with_state(tape: Tape, kept: Sequence[str]) -> bool:
    """Return whether a tape has comparisons, kinks or steps by more than time and what is kept."""
    still = [port.name in (TIME, *kept) for port in tape.inputs]
    moving: list[bool] = []
    for code, row in zip(tape.kinds.tolist(), tape.operands.tolist(), strict=True):
        kind = Kind(code)
        if kind in LEAVES:
            moving.append(kind == Kind.INPUT and not still[row[0]])
            continue
        moving.append(any(moving[v] for v in row[: ARITY[kind]]))
        if moving[-1] and kind in SWITCHING:
            return True
    return False


def _switches_of(
    builder: TapeBuilder, kind: Kind, values: Sequence[int | None]
) -> list[tuple[int, bool]]:
    """Numbers that switch where an operation does, and whether at whole numbers."""
    if any(v is None for v in values):
        return []
    x, *others = [v for v in values if v is not None]
    y = others[0] if others else x
    one, apply = builder.constant(1.0), builder.apply
    match kind:
        case Kind.LT | Kind.FMIN | Kind.FMAX:
            return [(apply(Kind.SUB, x, y), False)]
        case Kind.LE:
            return [(apply(Kind.SUB, y, x), False)]
        case Kind.FABS:
            return [(x, False)]
        case Kind.SIGN | Kind.NOT:
            return [(x, False), (apply(Kind.NEG, x), False)]
        case Kind.COPYSIGN:
            return [(y, False)]
        case Kind.ATAN2:
            return [(x, False)]
        case Kind.FLOOR:
            return [(x, True)]
        case Kind.CEIL:
            return [(apply(Kind.NEG, x), True)]
        case Kind.FMOD:
            return [(apply(Kind.DIV, x, y), True)]
        case Kind.REMAINDER:
            half = apply(Kind.MUL, builder.constant(0.5), one)
            return [(apply(Kind.ADD, apply(Kind.DIV, x, y), half), True)]
    return []


# intervals ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Range:
    """Values and slopes of a function of time on intervals, between bounds."""

    low: Array
    high: Array
    least: Array
    most: Array


def _products(a: tuple[Array, Array], b: tuple[Array, Array]) -> tuple[Array, Array]:
    """Bounds of products; zero times anything is zero."""
    made = [np.where((x == 0) | (y == 0), 0.0, x * y) for x in a for y in b]
    return np.minimum.reduce(made), np.maximum.reduce(made)


def _scaled(x: Range, low: Array, high: Array, slope: tuple[Array, Array]) -> Range:
    """Function of x with values and slope by x between bounds."""
    return Range(low, high, *_products((x.least, x.most), slope))


def _constant(value: Array) -> Range:
    value, zero = np.asarray(value, dtype=float), np.zeros(())
    return Range(value, value, zero, zero)


def _unknown(low: Array | float = -np.inf, high: Array | float = np.inf) -> Range:
    return Range(np.asarray(low), np.asarray(high), np.asarray(-np.inf), np.asarray(np.inf))


def _where(condition: Mask, a: Range, b: Range) -> Range:
    names = ("low", "high", "least", "most")
    return Range(*(np.where(condition, getattr(a, n), getattr(b, n)) for n in names))


def _hull(a: Range, b: Range) -> Range:
    """Either of two functions, with a change between them anywhere."""
    return _unknown(np.minimum(a.low, b.low), np.maximum(a.high, b.high))


def _add(a: Range, b: Range) -> Range:
    return Range(a.low + b.low, a.high + b.high, a.least + b.least, a.most + b.most)


def _neg(a: Range) -> Range:
    return Range(-a.high, -a.low, -a.most, -a.least)


def _mul(a: Range, b: Range) -> Range:
    values = _products((a.low, a.high), (b.low, b.high))
    one = _products((a.least, a.most), (b.low, b.high))
    two = _products((a.low, a.high), (b.least, b.most))
    return Range(*values, one[0] + two[0], one[1] + two[1])


def _div(a: Range, b: Range) -> Range:
    low, high = 1.0 / b.high, 1.0 / b.low
    inverse = _scaled(b, low, high, (-np.maximum(low**2, high**2), -np.minimum(low**2, high**2)))
    return _where((b.low > 0) | (b.high < 0), _mul(a, inverse), _unknown())


def _wave(function: Kind, peak: float, a: Range) -> tuple[Array, Array]:
    """Bounds of a sine or cosine whose maxima are at `peak` and 2 pi further."""
    ends = MEANING[function](a.low), MEANING[function](a.high)

    def holds(place: float) -> Mask:
        turn = 2 * np.pi
        found: Mask = np.ceil((a.low - place) / turn) * turn + place <= a.high
        return found

    low = np.where(holds(peak + np.pi), -1.0, np.minimum(*ends))
    high = np.where(holds(peak), 1.0, np.maximum(*ends))
    known = np.isfinite(a.low) & np.isfinite(a.high)
    return np.where(known, low, -1.0), np.where(known, high, 1.0)


def _rising(kind: Kind, a: Range) -> Range:
    """A function that rises everywhere, by slopes that are not known any better."""
    low, high = MEANING[kind](a.low), MEANING[kind](a.high)
    made = _scaled(a, low, high, (np.asarray(0.0), np.asarray(np.inf)))
    return _where(np.isnan(low) | np.isnan(high), _unknown(), made)


def _power(a: Range, b: Range) -> Range:
    n = b.low
    ends = a.low**n, a.high**n
    low, high = np.minimum(*ends), np.maximum(*ends)
    slope = n * a.low ** (n - 1), n * a.high ** (n - 1)
    whole = (n == np.floor(n)) & (n > 0)
    crosses = (a.low < 0) & (a.high > 0)
    low = np.where(crosses & (n % 2 == 0), 0.0, low)
    slopes = np.minimum(*slope), np.maximum(*slope)
    slopes = np.where(crosses, np.minimum(slopes[0], 0.0), slopes[0]), slopes[1]
    known = (b.high == n) & (whole | (a.low > 0))
    return _where(known, _scaled(a, low, high, slopes), _unknown())


def _extreme(kind: Kind, a: Range, b: Range) -> Range:
    low, high = MEANING[kind](a.low, b.low), MEANING[kind](a.high, b.high)
    one, two = (a.high <= b.low), (b.high <= a.low)
    if kind == Kind.FMAX:
        one, two = two, one
    either = Range(low, high, np.minimum(a.least, b.least), np.maximum(a.most, b.most))
    return _where(one, a, _where(two, b, either))


def _steps(kind: Kind, a: Range) -> Range:
    """A function that is constant between its steps."""
    low, high = MEANING[kind](a.low), MEANING[kind](a.high)
    zero = np.zeros(())
    return _where(low == high, Range(low, high, zero, zero), _unknown(low, high))


def _logic(yes: Mask, no: Mask) -> Range:
    """One where `yes` is proved, zero where `no` is."""
    value = np.where(yes, 1.0, 0.0)
    zero = np.zeros(())
    return _where(yes | no, Range(value, value, zero, zero), _unknown(0.0, 1.0))


def _holds(a: Range) -> tuple[Mask, Mask]:
    """Return whether a condition is proved to hold, and whether it is proved not to."""
    return (a.low > 0) | (a.high < 0), (a.low == 0) & (a.high == 0)


def _apply(kind: Kind, *x: Range) -> Range:
    """An operation on intervals."""
    a, b = x[0], x[-1]
    match kind:
        case Kind.ADD:
            return _add(a, b)
        case Kind.SUB:
            return _add(a, _neg(b))
        case Kind.NEG:
            return _neg(a)
        case Kind.MUL if a is b:
            return _power(a, _constant(np.asarray(2.0)))
        case Kind.MUL:
            return _mul(a, b)
        case Kind.DIV:
            return _div(a, b)
        case Kind.SIN:
            return _scaled(a, *_wave(Kind.SIN, 0.5 * np.pi, a), _wave(Kind.COS, 0.0, a))
        case Kind.COS:
            low, high = _wave(Kind.SIN, 0.5 * np.pi, a)
            return _scaled(a, *_wave(Kind.COS, 0.0, a), (-high, -low))
        case Kind.POW:
            return _power(a, b)
        case Kind.FABS:
            made = _extreme(Kind.FMAX, a, _neg(a))
            return replace(made, low=np.maximum(made.low, 0.0))
        case Kind.FMIN | Kind.FMAX:
            return _extreme(kind, a, b)
        case Kind.FLOOR | Kind.CEIL | Kind.SIGN:
            return _steps(kind, a)
        case Kind.LT:
            return _logic(a.high < b.low, a.low >= b.high)
        case Kind.LE:
            return _logic(a.high <= b.low, a.low > b.high)
        case Kind.NOT:
            return _logic(*_holds(a)[::-1])
        case Kind.AND:
            return _logic(_holds(a)[0] & _holds(b)[0], _holds(a)[1] | _holds(b)[1])
        case Kind.OR:
            return _logic(_holds(a)[0] | _holds(b)[0], _holds(a)[1] & _holds(b)[1])
        case Kind.SELECT:
            yes, no = _holds(a)
            return _where(yes, x[1], _where(no, x[2], _hull(x[1], x[2])))
        case Kind.FMOD | Kind.REMAINDER:
            shift = np.where(kind == Kind.REMAINDER, 0.5, 0.0)
            ratio = _add(_div(a, b), _constant(shift))
            if kind == Kind.FMOD:
                count = _where(ratio.low >= 0, _steps(Kind.FLOOR, ratio), _steps(Kind.CEIL, ratio))
                count = _where((ratio.low < 0) & (ratio.high > 0), _unknown(), count)
            else:
                count = _steps(Kind.FLOOR, ratio)
            return _add(a, _neg(_mul(b, count)))
        case _ if kind in _RISING:
            return _rising(kind, a)
    return _unknown()


_RISING = {
    *(Kind.SQRT, Kind.ASIN, Kind.ATAN, Kind.EXP, Kind.EXPM1, Kind.LOG, Kind.LOG1P, Kind.SINH),
    *(Kind.TANH, Kind.ASINH, Kind.ACOSH, Kind.ATANH, Kind.ERF),
}


@lru_cache(maxsize=KEPT_TAPES)
def bounds_everywhere(tape: Tape) -> tuple[tuple[float, float], ...]:
    """Return bounds of all results of a tape, whatever its arguments are."""
    with np.errstate(all="ignore"):
        made = tape.fold(lambda *_: _unknown(), lambda x: _constant(np.asarray(x)), _apply)
    return tuple((float(x.low), float(x.high)) for x in made)


# search -------------------------------------------------------------------------------------------


class _Search:
    """Search of all runs at once, interval by interval."""

    def __init__(
        self,
        switches: Switches,
        kept: dict[str, Array],
        times: tuple[float, float],
        runs: int,
        check: Callable[[], None],
    ):
        self.switches, self.kept, self.check = switches, kept, check
        self.whole = np.array(switches.whole)
        self.finest = max(SAME_TIME * (times[1] - times[0]), np.spacing(np.abs(times).max()))
        self.left = float(EVALUATIONS[0] + EVALUATIONS[1] * runs)
        self.found: list[tuple[Numbers, Array]] = []

    def require(self, evaluations: float, t: Array) -> None:
        """Check that enough evaluations are left, and that Ctrl-C was not pressed.

        Raises:
            InvalidArgument: if there are fewer; it names the last of the times.
        """
        self.check()
        if evaluations > self.left:
            raise InvalidArgument(
                f"formulas of time switch too often near t = {t[-1]:.6g} s for all times to be "
                "found; simulate fewer runs or less time at a time, and keep arguments of floor, "
                "ceil and % between bounds, as in floor(1 / max(t, 0.01))"
            )

    def values(self, run: Numbers, t: Array) -> Array:
        """Numbers that switch, (times, numbers)."""
        self.check()
        arrays = [
            t[:, np.newaxis] if port.name == TIME else self._own(port.name, run)
            for port in self.switches.tape.inputs
        ]
        flat = [
            np.reshape(a, (*a.shape[:-1], *port.shape)) if port.shape == () else a
            for a, port in zip(arrays, self.switches.tape.inputs, strict=True)
        ]
        made: Array = self.switches.tape.evaluate(*flat)[0]
        return np.broadcast_to(made, (len(t), len(self.whole)))

    def _own(self, name: str, run: Numbers) -> Array:
        array = self.kept[name]
        return array if array.ndim == 1 else array[run]

    def places(self, values: Array) -> Array:
        """Which side of a switch numbers are on, or between which whole numbers."""
        made: Array = np.where(self.whole, np.floor(values), values < 0)
        return made

    def ranges(self, run: Numbers, low: Array, high: Array) -> list[Range]:
        """Bounds of the numbers that switch on intervals."""
        ports = self.switches.tape.inputs
        one = np.ones(())

        def take(argument: int, element: int) -> Range:
            name = ports[argument].name
            if name == TIME:
                return Range(low, high, one, one)
            return _constant(self._own(name, run)[..., element])

        with np.errstate(all="ignore"):
            return self.switches.tape.fold(take, lambda x: _constant(np.asarray(x)), _apply)

    def divide(self, run: Numbers, low: Array, high: Array) -> tuple[Numbers, Array, Array]:
        """Find switches in intervals; return the intervals in which some may be left."""
        ends = self.values(run, low), self.values(run, high)
        places = self.places(ends[0]), self.places(ends[1])
        ranges = self.ranges(run, low, high)
        width = (high - low)[:, np.newaxis]

        def column(name: str) -> Array:
            shape = (len(low), 1)
            columns = [np.broadcast_to(getattr(r, name)[..., np.newaxis], shape) for r in ranges]
            made: Array = np.concatenate(columns, axis=1)
            return made

        least, most = column("least"), column("most")
        with np.errstate(all="ignore"):
            up, down = np.maximum(most, 0.0) * width, np.maximum(-least, 0.0) * width
            bottom = np.fmax(column("low"), np.fmax(ends[0] - down, ends[1] - up))
            top = np.fmin(column("high"), np.fmin(ends[0] + up, ends[1] + down))
            same = self.places(bottom) == self.places(top)
        straight = (least >= 0) | (most <= 0)
        changed = (places[0] != places[1]) & ~np.isnan(places[0] + places[1])
        single = straight & changed
        open_ = ~(same | straight)
        short = (width[:, 0] <= self.finest) & open_.any(axis=1)
        single |= short[:, np.newaxis] & changed
        open_[short] = False
        which, number, before, after = self.locate(run, low, high, single, places)
        del number
        self.found.append((run[which], after))
        # what is left between the switches that were found, or on both sides of the middle
        again = open_.any(axis=1)
        plain = again & ~single.any(axis=1)
        middle = 0.5 * (low + high)
        cut = again[which]
        index = np.concatenate([np.flatnonzero(plain), which[cut]])
        left = np.concatenate([middle[plain], before[cut]])
        right = np.concatenate([middle[plain], after[cut]])
        order = np.lexsort((left, index))
        index, left, right = index[order], left[order], right[order]
        rows = np.flatnonzero(again)
        owner = np.concatenate([rows, index])
        begins = np.concatenate([low[rows], right])
        ends_ = np.concatenate([left, high[rows]])
        owner_of_end = np.concatenate([index, rows])
        one, two = np.lexsort((begins, owner)), np.lexsort((ends_, owner_of_end))
        owner, begins, ends_ = owner[one], begins[one], ends_[two]
        some = begins < ends_
        return run[owner[some]], begins[some], ends_[some]

    def locate(
        self, run: Numbers, low: Array, high: Array, single: Mask, places: tuple[Array, Array]
    ) -> tuple[Numbers, Numbers, Array, Array]:
        """Locate switches to neighbouring floating-point times: interval, number, both times."""
        which, number = np.nonzero(single)
        first, last = (p[which, number] for p in places)
        counts = np.where(self.whole[number], np.abs(last - first), 1.0)
        self.require(LEAST_EVALUATIONS * counts.sum(), low[which][np.argsort(counts)])
        count = counts.astype(np.intp)
        which, number = np.repeat(which, count), np.repeat(number, count)
        step = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
        first, last = np.repeat(first, count), np.repeat(last, count)
        whole, rises = self.whole[number], last > first
        level = np.where(whole, np.where(rises, first + 1.0 + step, first - step), 0.0)
        a, b, own = low[which].copy(), high[which].copy(), run[which]

        def over(t: Array, rows: Numbers) -> tuple[Mask, Array]:
            x = self.values(own[rows], t)[np.arange(len(rows)), number[rows]]
            past = np.where(whole[rows], np.floor(x) >= level[rows], ~(x < 0))
            return past == np.where(whole, rises, first == 1.0)[rows], x - level[rows]

        rows = np.arange(len(which))
        if rows.size:
            _, f_a = over(a, rows)
            _, f_b = over(b, rows)
            with np.errstate(all="ignore"):
                guess = a - f_a * (b - a) / (f_b - f_a)
            for side in (-NEAR, NEAR):
                t = np.clip(guess + side * np.spacing(np.abs(guess)), a, b)
                t = np.where(np.isfinite(t), t, 0.5 * (a + b))
                past, _ = over(t, rows)
                a, b = np.where(past, a, t), np.where(past, t, b)
        while rows.size:
            middle = a[rows] + 0.5 * (b[rows] - a[rows])
            between = (middle > a[rows]) & (middle < b[rows])
            rows, middle = rows[between], middle[between]
            self.require(rows.size, middle)
            self.left -= rows.size
            past, _ = over(middle, rows)
            b[rows[past]], a[rows[~past]] = middle[past], middle[~past]
        return which, number, a, b


def switching_times(
    switches: Switches,
    begin: float,
    end: float,
    kept: dict[str, Array],
    check: Callable[[], None] = lambda: None,
) -> tuple[Numbers, Array]:
    """Find the times after `begin`, up to `end`, from which on something is switched.

    The last floating-point time before each still belongs to what was before.

    Args:
        switches: What may switch.
        begin, end: The interval, begin < end.
        kept: Arguments besides time, (size,) or (runs, size).
        check: Called now and then; it may raise `KeyboardInterrupt`.

    Returns:
        Numbers of the runs, all zero if they share everything, and times in order.

    Raises:
        InvalidArgument: if something switches too often.
    """
    runs = max((len(a) for a in kept.values() if a.ndim > 1), default=1)
    search = _Search(switches, kept, (begin, end), runs, check)
    run = np.arange(runs)
    low, high = np.full(runs, begin), np.full(runs, end)
    while run.size:
        if run.size > MAX_INTERVALS * runs:
            search.finest = np.inf
        run, low, high = search.divide(run, low, high)
    run = np.concatenate([r for r, _ in search.found])
    time = np.concatenate([t for _, t in search.found])
    made = np.unique(np.stack([run.astype(float), time]), axis=1)
    return made[0].astype(np.intp), made[1]


def places_tape(found: Sequence[Switches]) -> Tape:
    """Make a tape of time, and of what a run keeps, to `places` and to the signs of `slopes`.

    A place changes wherever something switches. A slope changes its sign where a number that
    switches turns back, so that one which comes and goes within a step is seen there.
    """
    ports = {port.name: port for some in found for port in some.tape.inputs}
    builder = TapeBuilder()
    one = Formula(builder, builder.constant(1.0))
    given = {
        name: [Formula(builder, builder.input(k, i)) for i in range(port.size)]
        for k, (name, port) in enumerate(ports.items())
    }
    places: dict[int, None] = {}
    slopes: dict[int, None] = {}
    for some in found:
        names = [port.name for port in some.tape.inputs]
        numbers = builder.replay(some.tape, [[x.number for x in given[n]] for n in names])
        along = [[one if n == TIME else None for _ in given[n]] for n in names]
        changes = changes_along(some.tape, [given[n] for n in names], along)
        for number, change, whole in zip(numbers, changes, some.whole, strict=True):
            x = Formula(builder, number)
            places[(x.floor() if whole else x < 0.0).number] = None
            if change is not None and builder.value(change.number) is None:
                slopes[(change < 0.0).number] = None
    outputs = Port("places", (len(places),)), Port("slopes", (len(slopes),))
    return Tape.build("places", tuple(ports.values()), outputs, builder, [*places, *slopes])
