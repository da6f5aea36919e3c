"""One physics, several derivations: all must agree, or say why they cannot take a mechanism."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import axode as ax
from laws.cases import ROUNDING, SOLVED, Case, agree, case_of
from random_mechanisms import MECHANISMS, random_loop, random_tree, random_vehicle

TERMS = ("I", "bias", "gamma", "delta", "tau")
SOLUTIONS = (
    "forward_dynamics",
    "accelerations",
    "multipliers",
    "inverse_dynamics",
    "inverse_residual",
)
RIVALS = ("complement", "multipliers", "lagrange")
# Seeds of random mechanisms that hypothesis draws; few, because each is derived four times.
EXAMPLES = 3
SEEDS = st.integers(0, 2**31 - 1)


def formulation_of(case, formulation):
    """The rival's equations, or None where it refuses a massless tree."""
    try:
        return case.by(formulation)
    except ax.NotApplicable as refusal:
        assert formulation == "multipliers" and "inertia" in str(refusal)
        massless = [b for b in case.mechanism.bodies if b.inertia.ideal]
        assert massless, "only idealised bodies make a tree's inertia singular"
        return None


def compare(case, formulation):
    if formulation_of(case, formulation) is not None:
        compare_terms(case, formulation)


def compare_terms(case, formulation):
    """All terms and solutions of a formulation against those of the default."""
    mine, rival = case.equations, case.by(formulation)
    for names, tolerance in ((TERMS, ROUNDING), (SOLUTIONS, SOLVED)):
        for name in names:
            pair = getattr(rival, name), getattr(mine, name)
            for state in case.states:
                agree(*case.at(state, *pair), tolerance, name)


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("formulation", RIVALS)
def test_formulations_agree(name, formulation):
    compare(case_of(name), formulation)


@pytest.mark.slow
@settings(max_examples=EXAMPLES)
@given(seed=SEEDS)
def test_formulations_agree_on_any_tree(seed):
    rng = np.random.default_rng(seed)
    case = Case(random_tree(rng, int(rng.integers(1, 4))), seed)
    for formulation in RIVALS:
        compare(case, formulation)


@pytest.mark.slow
@settings(max_examples=EXAMPLES)
@given(seed=SEEDS)
def test_formulations_agree_on_any_loop(seed):
    case = Case(random_loop(np.random.default_rng(seed)), seed)
    for formulation in RIVALS:
        compare(case, formulation)


@pytest.mark.slow
@settings(max_examples=EXAMPLES)
@given(seed=SEEDS)
def test_formulations_agree_on_any_vehicle(seed):
    case = Case(random_vehicle(np.random.default_rng(seed)), seed)
    for formulation in RIVALS:
        compare(case, formulation)


def test_multipliers_refuse_a_tree_without_inertia():
    """A massless rod: fine once its end is held, not in the tree alone."""
    with pytest.raises(ax.NotApplicable, match="rod"):
        MECHANISMS["massless_coupler"]().derive("multipliers")


@pytest.mark.parametrize("name", [n for n in MECHANISMS if n != "massless_coupler"])
def test_multipliers_take_every_other_mechanism(name):
    assert formulation_of(case_of(name), "multipliers") is not None
