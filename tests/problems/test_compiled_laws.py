"""Laws of contacts as compiled programs: as the solver in NumPy finds them, lane by lane."""

from __future__ import annotations

import numpy as np
import pytest

from axode.codegen.tape.program import Program
from axode.codegen.targets.cpu_rollout import Rollout
from axode.problems.contacts.compiled_laws import solve_operations
from axode.problems.contacts.complementarity import solve_contacts
from tests.problems.contact_systems import (
    ContactProblem,
    meets_laws,
    point_contacts,
    random_vehicle,
)

SAME = 1e-8  # relative: speeds found in two ways, where rigid bodies determine them


def solved(problems: list[ContactProblem]) -> tuple[np.ndarray, np.ndarray]:
    """Impulses of problems with the same rows, and which of them are solved."""
    m, count = len(problems[0].w), len(problems)
    given = {"G": m * m, "free": m, "approach": m, "least": m, "limits": m}
    state = {"impulses": m, "solving": 1, "solved": 1}
    program = Program("laws", state, given, {}, tuple(solve_operations(problems[0].rows, m)))
    rollout = Rollout(program)
    buffers = rollout.new_state(count, {"solving": np.ones((count, 1))})
    buffers |= {name: np.zeros((count, size)) for name, size in given.items()}
    for k, problem in enumerate(problems):
        buffers["G"][k], buffers["free"][k] = problem.G.ravel(), problem.w
        buffers["limits"][k] = problem.limits
    rollout(buffers, {}, budget=1, threads=1)
    return buffers["impulses"], buffers["solved"][:, 0] > 0


@pytest.mark.parametrize(
    ("wheels", "count"), [(1, 200), (2, 200), pytest.param(4, 2000, marks=pytest.mark.slow)]
)
def test_lanes_are_solved_as_one_by_one(wheels: int, count: int) -> None:
    """Also those that need damped steps, softer springs or sweeps, beside others that do not."""
    rng = np.random.default_rng(wheels)
    problems = [random_vehicle(rng, wheels, 1.0) for _ in range(count)]
    impulses, found = solved(problems)
    for problem, x, is_solved in zip(problems, impulses, found, strict=True):
        known = solve_contacts(problem.G, problem.w, problem.rows, problem.limits)
        assert is_solved or known.jamming or not known.solved
        if is_solved:
            assert meets_laws(problem, x, 1e-6)
        if is_solved and known.solved and wheels < 4:  # more share their load as they like
            speeds = problem.w + problem.G @ x
            assert np.abs(speeds - known.speeds).max() < SAME * np.abs(problem.w).max()


def test_impulses_do_not_depend_on_the_other_lanes() -> None:
    rng = np.random.default_rng(3)
    problems = [random_vehicle(rng, 3, 1.0) for _ in range(24)]
    together, _ = solved(problems)
    again, _ = solved(list(reversed(problems)))
    np.testing.assert_array_equal(together, again[::-1])


def test_a_problem_without_a_solution_is_not_called_solved() -> None:
    """Painleve's rod, pressed into the ground by its own friction."""
    angle, friction = 1.0, 2.5
    s, c = np.sin(angle) / 2, np.cos(angle) / 2
    J = np.array([[1.0, 0, -c], [0, 1, s]])
    G = J @ np.diag([1, 1, 12.0]) @ J.T
    rows, limits = point_contacts(1, 1), np.array([0.0, friction])
    none = ContactProblem(G, J @ np.array([-0.01, 2.0, 0.0]), rows, limits)
    easy = ContactProblem(np.eye(2), np.array([-1.0, 0.2]), rows, np.array([0.0, 0.5]))
    known = solve_contacts(none.G, none.w, rows, limits)
    impulses, found = solved([none, easy])
    assert found.tolist() == [known.solved, True]
    assert impulses[1] == pytest.approx([1.0, -0.2], abs=1e-12)
