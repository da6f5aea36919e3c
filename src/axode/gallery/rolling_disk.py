"""A disk that rolls on a plane, free to lean."""

from __future__ import annotations

import axode as ax


def rolling_disk(
    m: float = 2.0, R: float = 0.3, A: float = 0.045, C: float = 0.09, g: float = 9.81
) -> ax.Mechanism:
    """A thin disk on a level plane.

    Saha and Angeles, "Dynamics of nonholonomic mechanical systems using a natural orthogonal
    complement", *J. Applied Mechanics* 58, 1991, section 5. The disk's axis n is its own y; at home
    it stands upright and rolls along x. The speeds are its angular velocity in its own axes.

    Args:
        m: Mass of the disk [kg].
        R: Radius of the disk [m].
        A, C: Moments of inertia across and about the disk's axis [kg m^2].
        g: Gravitational acceleration [m/s^2].
    """
    p = {
        name: ax.Parameter(name, value)
        for name, value in (("m", m), ("R", R), ("A", A), ("C", C), ("g", g))
    }
    mechanism = ax.Mechanism("rolling_disk", gravity=(0, 0, -p["g"]))
    disk = mechanism.add_body(
        "disk",
        mass=p["m"],
        inertia=ax.Inertia.axial(p["C"], p["A"], "y"),
        shape=ax.Cylinder(p["R"], p["R"] * 0.06, "y"),
    )
    mechanism.add_joint("base", ax.Floating(), parent=mechanism.ground, child=disk)
    mechanism.add_contact("rim", ax.Rolling(radius=p["R"]), body=disk, axis="y")
    mechanism.measure("c", "velocity", body=disk)
    mechanism.set_home({"base.z": R})
    return mechanism
