"""The table of printed terms: every source's mechanism is there, with what is printed today."""

import re

import pytest

import axode as ax
from benchmarks.printed_terms import MECHANISMS, PAGE, PARTS, numbers_of, printed_terms, row_of
from variants import slow, some

FOR_SOAK = (
    "six_legged_platform",
    "flight_simulator",
    "caster_robot",
    "two_caster_robot",
    "cooperating_arms",
    "mobile_manipulator",
)
LONG = ("four_bar", "rolling_disk", "five_axis_arm")


def test_every_mechanism_of_the_sources_has_a_row():
    page = PAGE.read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)` \|", page, flags=re.MULTILINE) == list(MECHANISMS)
    shown = re.findall(r"`(\w+)`", (PAGE.parent / "concordance.md").read_text(encoding="utf-8"))
    beyond = {"cam_follower"}  # an example of a coupling that the sources do not have
    assert set(shown) & set(ax.gallery.NAMES) - beyond <= set(MECHANISMS)


@pytest.mark.parametrize("name", slow(some(MECHANISMS, *FOR_SOAK), *LONG))
def test_the_numbers_are_those_of_the_print(name):
    equations = ax.gallery.build(name).derive(self_check=False)
    written = numbers_of(row_of(PAGE.read_text(encoding="utf-8"), name))
    assert written == [printed_terms(equations, parts) for parts in PARTS]
