"""Impulses of contacts: against all modes tried one by one, and against the laws written out."""

from __future__ import annotations

import numpy as np
import pytest

from axode.problems.contacts.complementarity import (
    LIMIT,
    OPEN,
    SLIP,
    STICK,
    ContactSolution,
    solve_contacts,
)
from tests.problems.contact_systems import (
    ContactProblem,
    all_solutions,
    meets_laws,
    parked_vehicle,
    point_contacts,
    random_problem,
    random_vehicle,
)

SAME = 1e-8  # relative and in m/s: speeds of solutions found in two ways

MISSED = 3  # per 600 states of rows coupled more strongly than those of vehicles


def solve(problem: ContactProblem) -> ContactSolution:
    return solve_contacts(problem.G, problem.w, problem.rows, problem.limits)


def different(solutions: list[np.ndarray]) -> list[np.ndarray]:
    """Solutions that are not the same but for rounding."""
    found: list[np.ndarray] = []
    for v in solutions:
        if all(np.abs(v - other).max() > 1e-6 for other in found):
            found.append(v)
    return found


def check_against_enumeration(problem: ContactProblem) -> bool:
    """Check one problem; returns whether rigid bodies determine its motion."""
    solution, known = solve(problem), different(list(all_solutions(problem)))
    if not known:
        assert not solution.solved, "a solution where no mode has one"
        return False
    if solution.solved:
        miss = min(np.abs(solution.speeds - v).max() for v in known)
        assert miss < SAME * max(1.0, np.abs(problem.w).max())
    return len(known) == 1 and not solution.jamming and not solution.solved


@pytest.mark.parametrize("wheels", [1, 2, 3])
def test_lateral_friction_of_vehicles_is_that_of_the_only_mode_that_fits(wheels: int) -> None:
    rng = np.random.default_rng(wheels)
    for _ in range(60):
        assert not check_against_enumeration(random_vehicle(rng, wheels, 1.0, tangents=1))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("contacts", "boxes", "freedoms"), [(1, 0, 3), (2, 0, 3), (2, 1, 4), (3, 0, 3), (3, 0, 6)]
)
def test_random_rows_are_solved_as_enumeration_does(
    contacts: int, boxes: int, freedoms: int
) -> None:
    rng = np.random.default_rng(contacts + 10 * freedoms)
    rows = point_contacts(contacts, 1, boxes)
    missed = sum(
        check_against_enumeration(random_problem(rng, rows, freedoms, 0.8)) for _ in range(600)
    )
    assert missed <= MISSED


@pytest.mark.parametrize("wheels", [2, 3, 4, 6])
def test_disks_of_friction_meet_the_laws(wheels: int) -> None:
    rng = np.random.default_rng(wheels)
    for _ in range(40):
        problem = random_vehicle(rng, wheels, 1.0)
        solution = solve(problem)
        assert solution.solved
        assert meets_laws(problem, solution.impulses, 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("wheels", "states"), [(2, 2000), (3, 2000), (4, 2000), (6, 1500)])
def test_nearly_all_random_states_of_rigid_vehicles_are_solved(wheels: int, states: int) -> None:
    rng = np.random.default_rng(100 + wheels)
    unsolved = 0
    for _ in range(states):
        problem = random_vehicle(rng, wheels, 1.0)
        solution = solve(problem)
        unsolved += not solution.solved and not solution.jamming
        assert not solution.solved or meets_laws(problem, solution.impulses, 1e-6)
    assert unsolved <= (0 if wheels < 4 else 2)


@pytest.mark.slow
def test_nearly_parallel_wheels_are_solved() -> None:
    """Their rows nearly follow from each other: modes change while springs are relaxed."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        problem = parked_vehicle(rng, 1e-5)
        solution = solve(problem)
        assert solution.solved
        assert meets_laws(problem, solution.impulses, 1e-6)


def test_wheels_of_an_axle_share_a_lateral_force_until_one_has_none() -> None:
    """A mass on two contacts side by side, pushed sideways: shares are equal while both can.

    The second carries a tenth of the load; beyond its friction the first one takes the rest, and
    nothing slips.
    """
    rows = point_contacts(2, 1)
    J = np.array([[1.0, 1, 0], [0, 0, 1], [1, -1, 0], [0, 0, 1]])  # heave, roll, sideways
    G = J @ J.T
    limits = np.array([0.0, 0.5, 0, 0.5])
    free = J @ np.array([-1.0, -0.8, 0.0])  # loads 0.9 and 0.1
    light = solve_contacts(G, free + J @ (0, 0, 0.08), rows, limits)
    assert light.impulses == pytest.approx([0.9, -0.04, 0.1, -0.04], abs=1e-9)
    heavy = solve_contacts(G, free + J @ (0, 0, 0.3), rows, limits)
    assert heavy.impulses == pytest.approx([0.9, -0.25, 0.1, -0.05], abs=1e-9)
    assert heavy.speeds == pytest.approx(0, abs=1e-12)
    assert heavy.modes.tolist() == [STICK, STICK, STICK, LIMIT]
    slipping = solve_contacts(G, free + J @ (0, 0, 0.7), rows, limits)
    assert slipping.speeds[[1, 3]] == pytest.approx(0.2, abs=1e-9)
    assert slipping.modes[[1, 3]].tolist() == [SLIP, SLIP]


def test_dry_friction_of_a_joint_holds_up_to_its_limit() -> None:
    rows = point_contacts(0, 0, 1)
    for speed, left in ((0.3, 0.0), (-0.3, 0.0), (1.5, 0.5), (-1.5, -0.5)):
        found = solve_contacts(np.eye(1), np.array([speed]), rows, np.ones(1))
        assert found.speeds == pytest.approx([left], abs=1e-13)


def test_a_direction_that_is_given_is_kept() -> None:
    rows = point_contacts(1, 2)
    found = solve_contacts(
        np.eye(3), np.array([-1.0, 0, 0]), rows, np.full(3, 0.5), sliding=np.array([0.0, 0.6, -0.8])
    )
    assert found.impulses == pytest.approx([1.0, -0.3, 0.4], abs=1e-12)


def test_least_impulses_and_gaps() -> None:
    rows = point_contacts(1, 0)
    bounced = solve_contacts(np.eye(1), np.array([-1.0]), rows, np.zeros(1), least=np.array([1.8]))
    assert bounced.speeds == pytest.approx([0.8], abs=1e-12)
    near = solve_contacts(np.eye(1), np.array([-1.0]), rows, np.zeros(1), approach=np.array([0.3]))
    assert near.speeds == pytest.approx([-0.3], abs=1e-12)
    far = solve_contacts(np.eye(1), np.array([-1.0]), rows, np.zeros(1), approach=np.array([1.3]))
    assert far.modes.tolist() == [OPEN]


def test_a_rod_that_jams_is_reported() -> None:
    """Painleve's rod: at large friction its tip is pressed into the ground, and no mode fits."""
    angle, friction, length = 1.0, 2.5, 1.0
    s, c = np.sin(angle) * length / 2, np.cos(angle) * length / 2
    J = np.array([[1.0, 0, -c], [0, 1, s]])  # heave, slide and turning of a rod of mass 1
    G = J @ np.diag([1, 1, 12 / length**2]) @ J.T
    free = J @ np.array([-0.01, 2.0, 0.0])
    found = solve_contacts(G, free, point_contacts(1, 1), np.array([0.0, friction]))
    assert found.jamming == (0,)
    weak = solve_contacts(G, free, point_contacts(1, 1), np.array([0.0, 0.1]))
    assert weak.jamming == ()
    assert weak.solved
