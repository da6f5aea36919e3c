"""Derivatives of legs that follow the link they are held at, against complex steps.

Legs stand on the ground or on a cart that rolls, are held at the platform or at a part that turns
on it, and stand on the near or on the far side of their loops.
"""

import math
from functools import cache

import pytest

import axode as ax
from laws.cases import SOLVED, Case
from laws.test_first_derivatives import check


def carried_platform(legs=6):
    """A platform on legs from a cart on wheels; the first leg holds a disk on the platform."""
    bot = ax.Mechanism("carried platform")
    cart = bot.add_body("cart", mass=20.0, com=(0.02, 0.01, 0.05), inertia=(1.0, 1.2, 1.5))
    bot.add_joint("cart", ax.Planar(), parent=bot.ground, child=cart, at=(0, 0, 0.1))
    for side, y in (("left", 0.3), ("right", -0.3)):
        bot.add_wheel(side, ax.Rolling(radius=0.1), on=cart, at=(0, y, 0), mass=0.5)
    plate = bot.add_body("plate", mass=8.0, com=(0.01, -0.02, 0.03), inertia=(0.3, 0.35, 0.6))
    bot.add_joint("plate", ax.Floating(), parent=cart, child=plate)
    disk = bot.add_body("disk", mass=1.0, com=(0.01, 0.02, 0.03), inertia=(0.03, 0.02, 0.04))
    bot.add_joint("disk", ax.Revolute("z"), parent=plate, child=disk, at=(0, 0, 0.02))
    bot.add_motor("disk", "disk")
    home = {"plate.z": 0.7}
    for k in range(legs):
        start, end = math.pi / 3 * (k - k % 2), math.pi / 3 * (k + k % 2 - 1)
        foot, head = start + 0.4 * (k % 2) - 0.2, end - 0.5 * (k % 2) + 0.25
        (x0, y0), (x1, y1) = (
            (r * math.cos(a), r * math.sin(a)) for r, a in ((0.6, foot), (0.4, head))
        )
        cylinder = bot.add_body(
            f"cylinder{k}", mass=1.5, com=(0.01, 0.02, 0.2), inertia=(0.03, 0.032, 0.002)
        )
        rod = bot.add_body(f"rod{k}", mass=0.8, com=(0.004, 0, -0.2), inertia=(0.02, 0.021, 0.001))
        bot.add_joint(
            f"hip{k}", ax.Universal("x", "y"), parent=cart, child=cylinder, at=(x0, y0, 0)
        )
        bot.add_joint(f"leg{k}", ax.Prismatic("z"), parent=cylinder, child=rod)
        top, z = (plate, 0.0) if k else (disk, -0.02)
        bot.add_loop(f"ankle{k}", ax.Spherical(), parent=rod, child=top, child_at=(x1, y1, z))
        bot.add_motor(f"leg{k}", f"leg{k}")
        x, y = x1 - x0, y1 - y0
        home[f"hip{k}.first"] = math.atan2(-y, 0.7)
        home[f"hip{k}.second"] = math.atan2(x, math.hypot(y, 0.7))
        home[f"leg{k}"] = math.hypot(x, y, 0.7)
    bot.set_home(home)
    return bot


@cache
def platform_case(name):
    return Case(carried_platform() if name == "on a cart" else ax.gallery.build("gough_stewart"))


@pytest.mark.slow
@pytest.mark.parametrize("function", ["forward_dynamics", "inverse_dynamics"])
@pytest.mark.parametrize(
    ("make", "legs", "turned"),
    [(carried_platform, 6, False), (lambda: ax.gallery.build("gough_stewart"), 5, True)],
    ids=["on a cart", "hung on one leg"],
)
def test_derivatives_of_platforms_on_legs(make, legs, turned, function):
    case = Case(make())
    found = case.system.complement.legs
    assert [leg.turned for leg in found] == [turned] * legs
    check(case, function, SOLVED, multipliers=function == "forward_dynamics")
