"""A TOML file that extends another, as a start for additions of one's own."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from axode.mechanism.files.wheel_proposals import ProposedWheel, toml_text
from axode.mechanism.mechanism import Mechanism

WIDTH = 120  # of comments

_EXAMPLES = """\
[contact.NAME]  # a link that rolls or slides; axis: its spin axis
type = "rolling"  # or omni, mecanum, skate, ball
body = "LINK"
radius = 0.1
axis = "y"

[loop.NAME]  # a joint that closes a loop between two links
type = "revolute"
parent = "LINK"
child = "LINK"
axis = "z"
at = [0, 0, 0]
child_at = [0, 0, 0]

[motor.NAME]
joint = "JOINT"
limit = 4.0

[damper.NAME]
joint = "JOINT"
coefficient = 0.01

[mimic.NAME]
joint = "JOINT"
of = "JOINT"
multiplier = 1.0

[measure.NAME]
kind = "position"
body = "LINK"

[home]
JOINT = 0.0
"""


def additions_text(
    mechanism: Mechanism, file: str, base: str | None, wheels: Iterable[ProposedWheel]
) -> str:
    """Write a file that extends another: what it may name, and what it may add, in comments.

    Args:
        mechanism: What the other file describes.
        file: Its path, as the new file gives it.
        base: How its root link is held, if that was asked for.
        wheels: Links that look like wheels; they roll.
    """
    motor = next((drive.name for drive in mechanism.drives), "NAME")
    names = ", ".join(toml_text(wheel.name) for wheel in wheels)
    lines = [
        f"# Additions to {file}. Lengths in m, masses in kg, angles in rad, all else in SI units.",
        "",
        "[extends]",
        f"file = {toml_text(file)}",
        *([f'base = "{base}"'] if base else []),
        f"wheels = [{names}]" + ("  # links that look like wheels" if names else ""),
        'hold = []  # joints that stay as they are at home, such as "arm_*"',
        f"remove = []  # parts of that file, such as {toml_text(f'motor.{motor}')}",
        "",
        *_listed("links", (body.name for body in mechanism.bodies)),
        *_listed("joints", (f"{c.name} ({_kind(c.joint)})" for c in mechanism.connections)),
        *_listed("loops", (f"{c.name} ({_kind(c.joint)})" for c in mechanism.loops)),
        *_listed("couplings", (coupling.name for coupling in mechanism.couplings)),
        *_listed("motors", (drive.name for drive in mechanism.drives)),
        *_listed("dampers", (damper.name for damper in mechanism.dampers)),
        *_listed("springs", (spring.name for spring in mechanism.springs)),
        *_listed("springs between links", (strut.name for strut in mechanism.struts)),
        "",
        "# What can be added, among others; remove the signs in front of what you fill in.",
        "#",
        *(f"# {line}".rstrip() for line in _EXAMPLES.splitlines()),
    ]
    return "\n".join(lines) + "\n"


def _kind(joint: object) -> str:
    return type(joint).__name__.lower()


def _listed(what: str, names: Iterable[str]) -> list[str]:
    listed = ", ".join(names)
    wrapped = textwrap.wrap(
        f"# {what}: {listed}",
        WIDTH,
        subsequent_indent="#   ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return wrapped if listed else []
