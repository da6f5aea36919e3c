"""The laws that hold for random mechanisms hold for those of the gallery."""

from types import ModuleType

import pytest

from axode.gallery import NAMES
from laws import test_constraint_forces, test_constraints, test_dynamics
from laws.cases import gallery_case
from variants import slow, some

FOR_ALL = {
    "test_inertia_is_symmetric_and_positive_definite": test_dynamics,
    "test_inertia_is_the_second_derivative_of_kinetic_energy": test_dynamics,
    "test_coriolis_matrices_agree_entry_by_entry": test_dynamics,
    "test_bias_is_coriolis_matrix_times_speeds": test_dynamics,
    "test_gravity_and_springs_are_minus_the_slope_of_potential_energy": test_dynamics,
    "test_energy_changes_by_the_power_of_inputs_and_dissipation": test_dynamics,
    "test_direct_dynamics_undoes_inverse_dynamics": test_dynamics,
}
FOR_CONSTRAINED = {
    "test_every_row_holds_for_every_choice_of_independent_speeds": test_constraints,
    "test_the_complement_spans_all_that_the_rows_leave_free": test_constraints,
    "test_the_bias_of_every_row_is_its_full_derivative": test_constraints,
    "test_closed_loops_are_closed_as_seen_from_outside": test_constraints,
    "test_wheels_touch_and_roll_as_seen_from_outside": test_constraints,
    "test_multipliers_balance_the_uncoupled_bodies": test_constraint_forces,
    "test_constraint_forces_do_no_work_on_any_motion_the_rows_allow": test_constraint_forces,
}
OPEN_CHAINS = ("five_axis_arm", "seven_axis_arm")  # nothing constrains them
ALIKE = ("dietmaier_platform",)  # another robot has the same joints


def judge(name: str, laws: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch) -> None:
    for law, module in laws.items():
        monkeypatch.setattr(module, "case_of", gallery_case)
        getattr(module, law)(name)


@pytest.mark.parametrize("name", slow(some(NAMES, *ALIKE), "six_legged_platform"))
def test_dynamics_of(name: str, monkeypatch: pytest.MonkeyPatch):
    judge(name, FOR_ALL, monkeypatch)


@pytest.mark.parametrize("name", some(NAMES, *ALIKE))
@pytest.mark.parametrize("formulation", ["recursive", "complement"])
def test_skewness_of(name: str, formulation: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(test_dynamics, "case_of", gallery_case)
    test_dynamics.test_rate_of_inertia_minus_twice_coriolis_is_skew(name, formulation)


@pytest.mark.parametrize("name", some([name for name in NAMES if name not in OPEN_CHAINS], *ALIKE))
def test_constraints_of(name: str, monkeypatch: pytest.MonkeyPatch):
    judge(name, FOR_CONSTRAINED, monkeypatch)


@pytest.mark.parametrize("name", OPEN_CHAINS)
def test_open_chains_have_no_rows(name: str):
    assert gallery_case(name).equations.mobility.rows == 0
