"""Dimensions that motion reaches: chains of links on wheels that only roll."""

import pytest

import axode as ax
from axode.symbolic.analysis import mobility
from variants import further


def snake(links: int, joint: float, wheels: int, base: ax.Planar | ax.Floating) -> ax.Mechanism:
    """Links of 0.2 m with an axle at 0.1 m, the next link hinged at `joint`."""
    bot = ax.Mechanism("snake")
    for k in range(links):
        link = bot.add_body(f"link{k}", mass=1.0, com=(0.1, 0, 0.05), inertia=(0.01, 0.02, 0.02))
        if k:
            bot.add_joint(
                f"j{k}", ax.Revolute("z"), parent=f"link{k - 1}", child=link, at=(joint, 0, 0)
            )
        else:
            bot.add_joint("base", base, parent=bot.ground, child=link)
        for n in range(wheels):
            y = 0.05 * (1 - 2 * n) if wheels > 1 else 0.0
            bot.add_wheel(f"w{k}{n}", ax.Rolling(0.05), on=link, at=(0.1, y, 0.05), mass=0.1)
    return bot


@pytest.mark.parametrize(("links", "wheels"), [(2, 1), (3, 2), (4, 1), (4, 2)])
@pytest.mark.parametrize("midway", [True, False])
def test_a_snake_on_passive_wheels(links, wheels, midway):
    """Place, heading and joints are within reach: links + 2 dimensions, and distances rolled.

    Where joints are midway between axles, a from each, two links' distances s differ by a function
    of the angle between them, s' - s = 2 a ln cos(phi / 2), so that one of them tells all; else all
    are free. Wheels of one axle differ by its heading.
    """
    mobility = snake(links, 0.2 if midway else 0.27, wheels, ax.Planar()).derive().mobility
    assert mobility.mobility == 2
    assert mobility.configuration_dof == links + 2 + wheels * links
    assert mobility.reachable == links + 2 + (1 if midway else links)


def test_a_floating_snake_reaches_as_much():
    assert snake(3, 0.27, 2, ax.Floating()).derive().mobility.reachable == 8


def car_with_trailers(count: int, length: float = 1.0) -> ax.Mechanism:
    """Skates in a row, hinged at the axle in front: count + 3 dimensions are within reach."""
    bot = ax.Mechanism("trailers")
    for k in range(count + 1):
        bot.add_body(f"body{k}", mass=1.0, inertia=(0.01, 0.02, 0.02))
        bot.add_contact(f"wheels{k}", ax.Skate(), body=f"body{k}")
        if k:
            behind = {"parent": f"body{k - 1}", "child_at": (length, 0, 0)}
            bot.add_joint(f"hitch{k}", ax.Revolute("z"), child=f"body{k}", **behind)
        else:
            bot.add_joint("base", ax.Planar(), parent=bot.ground, child="body0")
    return bot


@pytest.mark.parametrize("count", [*range(1, 6), further(6), 7, *map(further, (8, 9)), 10])
def test_a_car_with_trailers_reaches_everything(count):
    """Growth vector 2, 3, ..., n + 3 (Jean 1996): the last direction takes n + 1 brackets."""
    mobility = car_with_trailers(count).derive(self_check=False).mobility
    assert (mobility.mobility, mobility.reachable) == (2, count + 3)
    assert mobility.reachable_is_certain


@pytest.mark.parametrize(("count", "length"), [(6, 20.0), (4, 200.0), (2, 3000.0), (3, 1e-3)])
def test_long_and_short_machines_reach_as_much(count, length):
    assert car_with_trailers(count, length).derive(self_check=False).mobility.reachable == count + 3


def test_a_dimension_that_fades_into_rounding_is_a_lower_bound(monkeypatch):
    monkeypatch.setattr(mobility, "SOLID", 1e-1)  # as if more were rounding, without a gap
    report = snake(4, 0.27, 1, ax.Planar()).derive().mobility
    assert not report.reachable_is_certain and report.reachable < 10
    assert f"at least {report.reachable} reachable" in str(report)
