"""Whether a model's names and its functions belong together; asked of files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from axode.codegen.facts import Facts
from axode.codegen.tape import Tape

Dimension = str | int

# What each function gives, by what it has one entry of; a number stands for itself.
SHAPES: dict[str, tuple[Dimension, ...]] = {
    "forward_dynamics": ("nu",), "inverse_dynamics": ("u",), "inverse_residual": ("nu",),
    "inverse_solution": ("inverse_solution",),
    "mass_matrix": ("nu", "nu"), "coriolis": ("nu", "nu"), "bias": ("nu",), "gamma": ("nu",),
    "delta": ("nu",), "tau": ("nu",), "speeds": ("speeds",), "rates": ("q",),
    "accelerations": ("speeds",), "state_rate": ("state_rate",), "projection": ("q",),
    "multipliers": ("rows",), "contact_forces": ("contacts", 3), "energy": (2,),
    "residual": ("residual_rows",), "residual_jacobian": ("residual_rows", "q"),
    "dropped_rows": ("dropped",), "measures": ("measures",),
    "measures_jacobian": ("measures", "q_nu"), "speed_map": ("speeds", "nu"),
    "poses": ("bodies", 4, 4), "twists": ("bodies", 6),
}  # fmt: skip


def disagreements(facts: Facts, tapes: Mapping[str, Tape]) -> Iterator[str]:
    """Words for everything in which names, sizes and functions contradict each other."""
    sizes = _sizes(facts)
    yield from _among_facts(facts, sizes)
    for name, tape in tapes.items():
        for port in tape.inputs:
            if port.name not in _arguments(facts):
                yield f"function {name} takes '{port.name}', which models do not have"
            elif port.shape != (sizes[port.name],):
                yield (f"function {name} takes {port.shape} for '{port.name}', the names are "
                       f"{sizes[port.name]}")  # fmt: skip
        expected = _shape(name, sizes)
        found = [port.shape for port in tape.outputs]
        if len(found) != 1 or (expected is not None and found[0] != expected):
            given = ", ".join(map(str, found))
            yield f"function {name} gives {given}, the names ask for {expected}"


def _sizes(facts: Facts) -> dict[str, int]:
    n_q, n_nu = len(facts.coordinates), len(facts.independent)
    return {
        "q": n_q, "nu": n_nu, "nu_dot": n_nu, "u": len(facts.inputs), "weights": facts.motors,
        "inverse_solution": len(facts.inputs) + n_nu + 1,
        "t": 1, "p": len(facts.parameters), "q_nu": n_q + n_nu, "state_rate": n_q + n_nu + 2,
        "speeds": len(facts.speeds), "rows": len(facts.rows), "dropped": len(facts.dropped),
        "residual_rows": len(facts.residual_rows), "contacts": len(facts.contacts),
        "bodies": len(facts.bodies), "measures": len(facts.measures),
    }  # fmt: skip


def _arguments(facts: Facts) -> tuple[str, ...]:
    return ("q", "nu", "nu_dot", "u", "weights", "t", *(() if facts.fixed else ("p",)))


def _shape(name: str, sizes: Mapping[str, int]) -> tuple[int, ...] | None:
    """What a function or a derivative of one gives, if its name tells."""
    function, _, wrt = name.partition("_by_")
    if function not in SHAPES:
        return None
    dimensions = (*SHAPES[function], *((wrt,) if wrt else ()))
    return tuple(d if isinstance(d, int) else sizes.get(d, -1) for d in dimensions)


def _among_facts(facts: Facts, sizes: Mapping[str, int]) -> Iterator[str]:
    """Lists that must be as long as others, and numbers that point into them."""
    lengths = {
        "home": (len(facts.home), "q"), "coordinate_units": (len(facts.coordinate_units), "q"),
        "speed_units": (len(facts.speed_units), "speeds"), "limits": (len(facts.limits), "weights"),
        "input_units": (len(facts.input_units), "u"), "row_units": (len(facts.row_units), "rows"),
        "residual_units": (len(facts.residual_units), "residual_rows"),
    }  # fmt: skip
    for name, (length, dimension) in lengths.items():
        if length != sizes[dimension]:
            yield f"{length} {name} for {sizes[dimension]} names"
    strangers = set(facts.independent) - set(facts.speeds)
    if strangers:
        yield f"independent speeds that are no speeds: {', '.join(sorted(strangers))}"
    if facts.motors > sizes["u"]:
        yield f"{facts.motors} motors among {sizes['u']} inputs"
    places = [k for four in facts.quaternions for k in four]
    if not all(0 <= k < sizes["q"] for k in places):
        yield "quaternions of coordinates that are not there"
    if not all(0 <= i < sizes["contacts"] and 0 <= k < 3 for i, k in facts.unknown_forces):
        yield "unknown forces of contacts that are not there"
