"""More than a hundred random mechanisms: every formulation and the oracle agree, or it is refused.

`make soak` does the same for ten thousand.
"""

import numpy as np
import pytest

import harder_mechanisms
from harder_mechanisms import add_twin, couple, make_harder
from near_mechanisms import KINDS, SHAPES, mechanism_of
from oracle.agreement import judge
from oracle.soak import RIVALS, SALT, judge_range
from oracle.switched_inputs import switched_fault
from random_mechanisms import arm
from variants import slow

# Most are nearly special, where mistakes hide.
COUNTS = {
    "generic": {"tree": 15, "loop": 5, "vehicle": 5},
    "nearly": {"tree": 45, "loop": 11, "vehicle": 13},
    "rounded": {"tree": 33, "loop": 8, "vehicle": 10},
}
# A refusal is right for a description that does not close or move; most must be taken.
MOST = 0.7


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", slow(KINDS, "nearly", "rounded"))
def test_formulations_agree_with_the_oracle(kind, shape):
    """Rivals and the system of all bodies in turn, each with every third mechanism."""
    verdicts = []
    for seed in range(COUNTS[kind][shape]):
        rivals = [RIVALS[seed // 3 % len(RIVALS)]] if seed % 3 == 0 else []
        verdicts.append(judge(mechanism_of(kind, shape, seed), rivals, bodies=seed % 3 == 1))
    failed = [f"{verdict.name}: {verdict.failed}" for verdict in verdicts if verdict.failed]
    assert not failed, "\n".join(failed)
    assert sum(not verdict.refused for verdict in verdicts) > MOST * COUNTS[kind][shape]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("harder", [couple, add_twin])
def test_coupled_joints_and_twins_agree_too(harder, shape):
    for seed in range(3):
        bot = mechanism_of("generic", shape, seed)
        harder(bot, np.random.default_rng(seed))
        bot.loop_tolerance = 0.0
        assert not judge(bot, [], bodies=False, thin=True).failed


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("digits", [5, 7, 8, 9, 10])
def test_twins_in_loops_hold_whatever_their_tilt(digits, monkeypatch):
    """A twin of a closure, and of a slide that can leave its place before the loop seems open."""
    monkeypatch.setattr(harder_mechanisms, "TILTS", (digits, digits))
    for seed in (2, 4):
        bot = mechanism_of("generic", "loop", seed)
        assert "tilted by 1.0e-" in add_twin(bot, np.random.default_rng(seed))
        bot.loop_tolerance = 0.0
        assert not judge(bot, [], bodies=False, thin=True).failed


@pytest.mark.filterwarnings("ignore")
def test_a_row_that_holds_little_of_its_own_may_lose_as_many_digits():
    """Of a universal joint's twin 6e-10 are left, which hold the joint; its bias is rounding."""
    bot = mechanism_of("generic", "loop", 100_901, size=4)
    assert "4.5e-09" in make_harder(bot, np.random.default_rng([SALT, 100_901]))
    verdict = judge(bot, [], thin=True)
    assert not verdict.failed and not verdict.refused and verdict.lost


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "number",
    [
        2187,  # pseudo joints where no tip can move against its rows
        2286,  # rows of which nothing but rounding is left, in the self-check
        8962,  # a joint whose forces are rounding of others
        8098,  # the same in the count of independent speeds
        9021,  # a tilted twin with short levers
    ],
)
def test_exact_and_nearly_exact_twins_agree(number):
    (record,) = judge_range(number, number + 1)
    assert record["verdict"] == "agrees", record["why"]


@pytest.mark.filterwarnings("ignore")
def test_laws_that_switch_move_as_their_pieces_do():
    for seed in (1, 2):  # one switches by time, one by state
        equations = arm(2).derive()
        assert not switched_fault(equations, np.random.default_rng(seed))
