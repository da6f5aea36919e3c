"""Dietmaier's platform: all forty postures are real."""

from __future__ import annotations

import numpy as np

import axode as ax
from axode.gallery.gough_stewart import on_six_legs
from axode.gallery.values import parameters

BASE = (
    (0.0, 0.0, 0.0),
    (1.107915, 0.0, 0.0),
    (0.549094, 0.756063, 0.0),
    (0.735077, -0.223935, 0.525991),
    (0.514188, -0.526063, -0.368418),
    (0.590473, 0.094733, -0.205018),
)
PLATFORM = (
    (0.0, 0.0, 0.0),
    (0.542805, 0.0, 0.0),
    (0.956919, -0.528915, 0.0),
    (0.665885, -0.353482, 1.402538),
    (0.478359, 1.158742, 0.107672),
    (-0.137087, -0.235121, 0.353913),
)
# one of the postures: position, and the directions of the platform's x and y
POSITION = (0.863325713770891, 0.00564402867997359, -0.50461555354769)
ALONG_X = (0.191288333012351, 0.943756501770663, 0.26968952337634)
ALONG_Y = (-0.727039337601767, -0.0483533608080227, 0.684891052707037)
DEFAULTS = {"m1": 0.8, "m2": 0.6, "mp": 2.0, "g": 9.81}


def dietmaier_platform(**values: float) -> ax.Mechanism:
    """A Gough-Stewart platform that has 40 real postures for the lengths of its legs at home.

    P. Dietmaier, "The Stewart-Gough platform of general geometry can have 40 real postures",
    Advances in Robot Kinematics: Analysis and Control, 1998: found by moving points and lengths
    until the last complex postures had met and become real. Home is one of them; `l_I` to `l_VI`
    are then 1, 0.645275, 1.086284, 1.503439, 1.281933 and 0.771071 m.

    Keyword Args:
        m1: Mass of each cylinder [kg].
        m2: Mass of each piston [kg].
        mp: Mass of the platform [kg].
        g: Gravitational acceleration [m/s^2].
    """
    R = np.column_stack([ALONG_X, ALONG_Y, np.cross(ALONG_X, ALONG_Y)])
    p = parameters("dietmaier_platform", DEFAULTS, values)
    return on_six_legs("dietmaier_platform", (BASE, PLATFORM), (np.array(POSITION), R), p)
