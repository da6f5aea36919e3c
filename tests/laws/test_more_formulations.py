"""The formulations of the sources against the default one, on everything that they accept."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laws.cases import ROUNDING, SOLVED, Case, agree, case_of
from random_mechanisms import MECHANISMS, random_loop, random_tree, random_vehicle

TERMS = ("I", "bias", "gamma", "delta", "tau")
SOLUTIONS = ("forward_dynamics", "accelerations", "multipliers", "inverse_dynamics",
             "inverse_residual")  # fmt: skip
EXAMPLES = 4  # seeds that hypothesis draws: each mechanism is derived once a formulation
SEEDS = st.integers(0, 2**31 - 1)


def compare(case, formulation):
    """All terms and solutions of a formulation against those of the default."""
    mine, rival = case.equations, case.by(formulation)
    for state in case.states:
        for names, tolerance in ((TERMS, ROUNDING), (SOLUTIONS, SOLVED)):
            for name in names:
                agree(*case.at(state, getattr(rival, name), getattr(mine, name)), tolerance, name)


# virtual work ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MECHANISMS)
def test_virtual_work_takes_every_mechanism_and_agrees(name):
    compare(case_of(name), "virtual_work")


@pytest.mark.parametrize("make", [random_loop, random_vehicle])
@settings(max_examples=EXAMPLES)
@given(seed=SEEDS)
def test_virtual_work_agrees_on_any(make, seed):
    compare(Case(make(np.random.default_rng(seed)), seed), "virtual_work")


@settings(max_examples=EXAMPLES)
@given(seed=SEEDS)
def test_virtual_work_agrees_on_any_tree(seed):
    compare(Case(random_tree(np.random.default_rng(seed), 3), seed), "virtual_work")
