"""How the code of a robot grows with its limbs and their length: as its results do, not faster.

Seconds depend on the machine; operations and instructions do not, and LLVM's time is proportional
to them as long as no function gets longer.
"""

import re
import sys
from functools import cache

import casadi as ca
import numpy as np
import pytest

import axode as ax
from axode.codegen.lowering import batch_loop as kernel
from axode.codegen.lowering import chunk_plan as lowering
from axode.codegen.tape.tape import Tape
from axode.model.function_source import graph_tape
from axode.symbolic.functions import function_graph
from variants import further

LIMBS = (2, 3, 5)
LENGTHS = (5, 10, 15)
# Limbs differ a little: which terms vanish, and which of them are packed into a base of its own.
SPREAD = 1.1
OF_STATE = (
    "forward_dynamics",
    "inverse_dynamics",
    "inverse_residual",
    "inverse_solution",
    "bias",
    "potential_force",
    "energy",
    "poses",
    "twists",
    "state_rate",
)
MATRICES = ("mass_matrix", "coriolis", "speed_map")
LONGEST_STORED = 8  # lines of IR that an operation takes at most, results and slots included


def robot(limbs: int, length: int, base: str = "floating", motors: bool = True) -> ax.Mechanism:
    """Equal limbs on a base, no link's inertia special."""
    rng = np.random.default_rng(3)
    bot = ax.Mechanism("robot")

    def link(name: str, mass: float) -> object:
        tensor = rng.normal(size=(3, 3)) / 20
        return bot.add_body(
            name, mass=mass, com=rng.normal(size=3) / 9, inertia=0.2 * np.eye(3) + tensor @ tensor.T
        )

    trunk = link("trunk", 5.0)
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child=trunk)
    if base == "wheels":
        for side, y in (("left", 0.2), ("right", -0.2)):
            bot.add_wheel(
                side, ax.Rolling(radius=0.1), on=trunk, at=(0, y, 0), mass=0.5, motor=motors
            )
        bot.set_home({"base.z": 0.1})
    for k in range(limbs):
        parent = trunk
        for j in range(length):
            name = f"limb{k}.{j}"
            own = link(name, 1.0)
            bot.add_joint(
                name, ax.Revolute("zyx"[j % 3]), parent=parent, child=own, at=rng.normal(size=3) / 5
            )
            if motors or j == 0:
                bot.add_motor(name, name)
            parent = own
    return bot


@cache
def derived(limbs: int, length: int, base: str, motors: bool) -> ax.Equations:
    """Return the equations of a robot, derived once for all tests."""
    return robot(limbs, length, base, motors).derive()


def operations(equations: ax.Equations, name: str) -> int:
    return graph_tape(function_graph(equations, name, fixed=True)).n_operations


def assert_linear(sizes, counts, what: str) -> None:
    few, more, most = counts
    first = (more - few) / (sizes[1] - sizes[0])
    second = (most - more) / (sizes[2] - sizes[1])
    assert second <= SPREAD * first, f"{what}: {counts} for {sizes}"


@pytest.mark.slow
@pytest.mark.parametrize("kind", [further("driven"), "wheels", further("passive")])
def test_operations_grow_linearly_with_the_limbs(kind):
    """Matrices too: limbs do not feel each other."""
    base = "wheels" if kind == "wheels" else "floating"
    robots = [derived(n, 3, base, kind != "passive") for n in LIMBS]
    dynamics = ("forward_dynamics", "inverse_solution", "mass_matrix", "coriolis")
    for name in (*OF_STATE, *MATRICES) if kind == "driven" else dynamics:
        assert_linear(LIMBS, [operations(e, name) for e in robots], name)


@pytest.mark.slow
def test_operations_of_vectors_grow_linearly_with_the_length():
    robots = [derived(1, n, "floating", True) for n in LENGTHS]
    for name in OF_STATE:
        assert_linear(LENGTHS, [operations(e, name) for e in robots], name)


def test_operations_of_matrices_grow_with_their_entries():
    """Twice the joints of one chain are four times the pairs."""
    robots = [derived(1, n, "floating", True) for n in LENGTHS]
    pairs = [n**2 for n in LENGTHS]
    for name in MATRICES:
        assert_linear(pairs, [operations(e, name) for e in robots], name)


def test_hybrid_dynamics_of_known_joints_grows_linearly():
    """The base alone is solved for."""
    counts = []
    for limbs in LIMBS:
        e = derived(limbs, 3, "floating", True)
        known = [s for s in e.independent if s.startswith("limb")]
        solved = ca.vertcat(*e.hybrid_dynamics(known, []))
        function = ca.Function("h", [e.q, e.nu, e.nu_dot, e.u], [solved])
        counts.append(
            ca.Function(
                "h", function.sx_in(), [ca.cse(function(*function.sx_in()))]
            ).n_instructions()
        )
    assert_linear(LIMBS, counts, "hybrid dynamics")


@cache
def coriolis_tape(limbs: int) -> Tape:
    return graph_tape(function_graph(robot(limbs, 3).derive(), "coriolis", fixed=True))


@pytest.mark.parametrize("lanes", [further(1), 8])
def test_no_function_of_the_code_gets_longer_with_the_results(lanes):
    """LLVM's time grows faster than the length of a function."""
    for limbs in (6, 8):
        tape = coriolis_tape(limbs)
        assert len(tape.results) > lowering.MOST_STORES
        text = kernel.module(tape, lanes)
        bodies = re.findall(r"define [^{]*\{\n(.*?)\n\}", text, re.DOTALL)
        longest = max(body.count("\n") for body in bodies)
        allowed = max(lowering.CHUNK, min(tape.n_operations, lowering.LONGEST_FUNCTION))
        assert longest <= LONGEST_STORED * allowed


def calls_to_derive(joints: int) -> int:
    """How many Python functions are called to derive a chain: what its time is proportional to."""
    bot, count = robot(1, joints), 0

    def note(frame, event, argument):
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        bot.derive()
    finally:
        sys.setprofile(None)
    return count


def test_the_calls_to_derive_a_chain_grow_linearly():
    """Names were looked up joint by joint: 400 joints took twelve times as long as 200."""
    calls_to_derive(3)  # imports
    few, more, most = (calls_to_derive(joints) for joints in (8, 16, 24))
    assert most - more <= 1.02 * (more - few)


def test_speeds_that_no_constraint_touches_cost_no_decomposition(monkeypatch):
    """A chain without motors took an SVD per joint, each of as many rows."""
    chain, svd, decomposed = robot(1, 12, motors=False), np.linalg.svd, []

    def record(A, *more, **options):
        decomposed.append(min(A.shape))
        return svd(A, *more, **options)

    monkeypatch.setattr(np.linalg, "svd", record)
    assert len(chain.derive(self_check=False).independent) == 18
    assert max(decomposed, default=0) <= 7  # coordinates of the base at most
