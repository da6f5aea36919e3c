"""Names as they are set: `left.rate`, `theta1_dot` and `m_pole` in LaTeX."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from axode.errors import InvalidArgument
from axode.mechanism.topology import parameters_of
from axode.printing.parts import is_first_kind

if TYPE_CHECKING:
    from axode.symbolic.equations import Equations

GREEK = frozenset(
    (
        "alpha",
        "beta",
        "gamma",
        "delta",
        "epsilon",
        "zeta",
        "eta",
        "theta",
        "iota",
        "kappa",
        "lambda",
        "mu",
        "nu",
        "xi",
        "pi",
        "rho",
        "sigma",
        "tau",
        "upsilon",
        "phi",
        "chi",
        "psi",
        "omega",
        "Gamma",
        "Delta",
        "Theta",
        "Lambda",
        "Xi",
        "Pi",
        "Sigma",
        "Phi",
        "Psi",
        "Omega",
    )
)
# What the library's own suffixes look like: letter and subscript.
SUFFIXES = {
    "x": ("x", ""),
    "y": ("y", ""),
    "z": ("z", ""),
    "yaw": (r"\psi", ""),
    "surge": ("v", "x"),
    "sway": ("v", "y"),
    "angle": (r"\theta", ""),
    "slide": ("s", ""),
    "first": (r"\theta", "1"),
    "second": (r"\theta", "2"),
    "torque": (r"\tau", ""),
    "force": ("f", ""),
    **{f"q{a}": ("q", a) for a in "wxyz"},
    **{f"w{a}": (r"\omega", a) for a in "xyz"},
    **{f"v{a}": ("v", a) for a in "xyz"},
    **{f"m{a}": ("m", a) for a in "xyz"},
    **{f"f{a}": ("f", a) for a in "xyz"},
}


@dataclass(frozen=True)
class Glyph:
    """A symbol as it is set: a letter or word, its subscripts and its dots."""

    head: str
    subscripts: tuple[str, ...] = ()
    dots: int = 0

    @property
    def tex(self) -> str:
        """LaTeX."""
        accent = ("", r"\dot", r"\ddot", r"\dddot")[min(self.dots, 3)]
        head = f"{accent}{{{self.head}}}" if accent else self.head
        return head + (f"_{{{','.join(self.subscripts)}}}" if self.subscripts else "")


@dataclass(frozen=True)
class Typeset:
    """LaTeX of every symbol, in the order of the model's vectors."""

    q: tuple[str, ...]
    nu: tuple[str, ...]
    u: tuple[str, ...]
    p: tuple[str, ...]
    time: str
    term: str  # the letter for named terms, used by nothing else
    vertical: str  # the letter of the vertical in the axes of a body
    rows: tuple[str, ...]

    @property
    def vectors(self) -> tuple[tuple[str, ...], ...]:
        """By argument of the tape."""
        return self.q, self.nu, self.u, (self.time,), self.p


def typeset_names(equations: Equations, *, all_speeds: bool = False) -> Typeset:
    """LaTeX for the names of a model: short where that is clear, in full where it is not.

    Vectors and matrices of the theory are bold, so that every letter is free for the user.

    Args:
        equations: The model.
        all_speeds: Whether all joint speeds take the place of the independent ones.
    """
    units = _units(equations)
    groups = (
        equations.coordinates,
        equations.speeds if all_speeds or is_first_kind(equations) else equations.independent,
        equations.inputs,
        tuple(equations.parameters),
    )
    names = [name for group in groups for name in group]
    own = _own_notation(equations)
    first = len(names) - len(groups[-1])  # parameters are last
    given = [own.get(name, "") if k >= first else "" for k, name in enumerate(names)]
    short = [
        Glyph(tex) if tex else _glyph(name, units, owner=False)
        for name, tex in zip(names, given, strict=True)
    ]
    taken = Counter(glyph.tex for glyph in short)
    chosen = [
        tex or (_glyph(name, units, owner=True) if taken[glyph.tex] > 1 else glyph).tex
        for name, glyph, tex in zip(names, short, given, strict=True)
    ]
    again = Counter(chosen)
    plain = [name for group in distinct_names(groups) for name in group]
    final = [
        c if again[c] == 1 or tex else verbatim(name)
        for name, c, tex in zip(plain, chosen, given, strict=True)
    ]
    used = {re.sub(r"[^A-Za-z\\].*", "", name) for name in final}
    term, vertical = (
        next(letter for letter in letters if letter not in used)
        for letters in (("z", "e", "w", "h", r"\kappa", r"\chi"), ("n", "k", r"\zeta", r"\eta"))
    )
    symbols = iter(final)
    q, nu, u, p = (tuple(next(symbols) for _ in group) for group in groups)
    rows = tuple(map(verbatim, equations.rows))
    return Typeset(q, nu, u, p, r"\mathsf{t}" if "t" in final else "t", term, vertical, rows)


def _own_notation(equations: Equations) -> dict[str, str]:
    """LaTeX that the user gave parameters.

    Raises:
        InvalidArgument: for two that would look the same.
    """
    parameters = parameters_of(equations.system.mechanism).values()
    given = {p.name: p.latex for p in parameters if p.latex}
    for tex, count in Counter(given.values()).items():
        if count > 1:
            alike = " and ".join(f"'{name}'" for name, other in given.items() if other == tex)
            raise InvalidArgument(f"parameters {alike} have the same LaTeX '{tex}'; change one")
    return given


def distinct_names(groups: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Names of coordinates, speeds, inputs and parameters; one that repeats another gets a mark."""
    seen: set[str] = set()
    found = []
    for group in groups:
        found.append(tuple(f"{name}'" if name in seen else name for name in group))
        seen |= {*group}
    return found


def _units(equations: Equations) -> dict[str, str]:
    """Unit of every coordinate that carries a joint's own name."""
    return {
        c.coordinates[0]: c.joint.coordinate_units[0]
        for c in equations.system.mechanism.connections
        if c.joint.dof == 1
    }


def _glyph(name: str, units: dict[str, str], *, owner: bool) -> Glyph:
    """`left.rate` as theta-dot with a subscript, `base.x` as x, `m_pole` as m with a subscript."""
    whole, _, suffix = name.rpartition(".")
    if not whole:
        return _joint_glyph(name, units) if name in units else _plain_glyph(name)
    if suffix == "rate":
        glyph = _joint_glyph(whole, units)
        return replace(glyph, dots=glyph.dots + 1)
    dots = 0
    if suffix.endswith("_rate") and suffix.removesuffix("_rate") in SUFFIXES:
        suffix, dots = suffix.removesuffix("_rate"), 1
    if suffix not in SUFFIXES:
        glyph = _plain_glyph(suffix)
        return replace(glyph, subscripts=(*glyph.subscripts, *_subscripts(whole)))
    head, subscript = SUFFIXES[suffix]
    always = suffix in ("torque", "force")
    subscripts = (
        *((subscript,) if subscript else ()),
        *(_subscripts(whole) if owner or always else ()),
    )
    return Glyph(head, subscripts, dots)


def _joint_glyph(name: str, units: dict[str, str]) -> Glyph:
    """The coordinate of a joint with one: its own symbol, or theta or s with its name below."""
    glyph = _plain_glyph(name)
    if not glyph.head.startswith(r"\mathrm"):
        return glyph
    letter = "s" if units.get(name) == "m" else r"\theta"
    return Glyph(letter, _subscripts(name))


def _plain_glyph(name: str) -> Glyph:
    """A name by itself: Greek letters, numbers and underscores recognized."""
    dots = 0
    while match := re.fullmatch(r"(.+?)_?(d?dot)", name):
        name, dots = match[1], dots + len(match[2]) - 2
    match = re.fullmatch(r"([A-Za-z]+?)(\d*)((?:_[A-Za-z0-9]+)*)", name)
    if match is None:
        return Glyph(verbatim(name), (), dots)
    head, number, rest = match.groups()
    if (
        indexed := re.fullmatch(r"([A-Za-z])([a-zA-Z]|[xyz]{2})", head)
        if head not in GREEK
        else None
    ):
        head, number = indexed[1], indexed[2] + number  # mp, Ixx
    below = [number] if number else []
    below += [part for part in rest.split("_") if part]
    letter = rf"\{head}" if head in GREEK else head if len(head) == 1 else rf"\mathrm{{{head}}}"
    return Glyph(letter, tuple(_subscript(part) for part in below), dots)


def _subscripts(name: str) -> tuple[str, ...]:
    """The parts of a name; of `joint3` only the number."""
    numbered = re.fullmatch(r"joint_?(\d+)", name)
    if numbered:
        return (numbered[1],)
    return tuple(_subscript(part) for part in re.split(r"[._\s-]+", name) if part)


def _subscript(part: str) -> str:
    if part in GREEK:
        return rf"\{part}"
    return part if len(part) == 1 or part.isdigit() else verbatim(part)


def verbatim(name: str) -> str:
    """A name letter by letter."""
    safe = re.sub(
        r"[^A-Za-z0-9.,:+*/()=' -]", lambda m: rf"\{m[0]}" if m[0] in "_&%$#{}" else "?", name
    )
    return rf"\mathrm{{{safe}}}"
