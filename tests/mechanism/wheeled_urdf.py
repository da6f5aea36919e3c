"""URDF files of wheeled robots, written as the packages of ROS write them."""

from __future__ import annotations

UPRIGHT = "-1.57 0 0"  # as published files turn the cylinder of a wheel


def cylinder(radius: float, length: float, xyz: str = "0 0 0", rpy: str = "0 0 0") -> str:
    """Write a cylinder for collision."""
    return collision(f'<cylinder radius="{radius}" length="{length}"/>', xyz, rpy)


def box(size: str, xyz: str = "0 0 0") -> str:
    """Write a box for collision."""
    return collision(f'<box size="{size}"/>', xyz)


def sphere(radius: float, xyz: str = "0 0 0") -> str:
    """Write a sphere for collision."""
    return collision(f'<sphere radius="{radius}"/>', xyz)


def collision(geometry: str, xyz: str = "0 0 0", rpy: str = "0 0 0") -> str:
    """Write a solid for collision."""
    origin = f'<origin xyz="{xyz}" rpy="{rpy}"/>'
    return f"<collision>{origin}<geometry>{geometry}</geometry></collision>"


def mesh(file: str) -> str:
    """Write a mesh for pictures."""
    return f'<visual><geometry><mesh filename="package://robot/{file}"/></geometry></visual>'


def link(name: str, *solids: str, mass: float = 0.0, moment: float = 0.0) -> str:
    """Write a link; one without mass is a frame."""
    tensor = f'<inertia ixx="{moment}" ixy="0" ixz="0" iyy="{moment}" iyz="0" izz="{moment}"/>'
    inertial = f'<inertial><mass value="{mass}"/>{tensor}</inertial>' if mass else ""
    return f'<link name="{name}">{inertial}{"".join(solids)}</link>'


def joint(parent: str, child: str, kind: str, xyz: str, rpy: str = "0 0 0", axis: str = "") -> str:
    """Write a joint, called as its child."""
    turns = f'<axis xyz="{axis}"/>' if axis else ""
    return (
        f'<joint name="{child}_joint" type="{kind}"><parent link="{parent}"/>'
        f'<child link="{child}"/><origin xyz="{xyz}" rpy="{rpy}"/>{turns}</joint>'
    )


def robot(name: str, *parts: str) -> str:
    """Write the file."""
    return f'<?xml version="1.0"?>\n<robot name="{name}">\n' + "\n".join(parts) + "\n</robot>\n"


def turtlebot(casters: tuple[str, ...] = ("-0.081 0 -0.004",), half_track: float = 0.08) -> str:
    """Write a robot as TurtleBot3: caster boxes reach 4 mm below the wheels."""
    parts = [
        link("base_footprint"),
        link(
            "base_link",
            mesh("base.stl"),
            box("0.14 0.14 0.143", "-0.032 0 0.07"),
            mass=0.83,
            moment=2e-3,
        ),
        joint("base_footprint", "base_link", "fixed", "0 0 0.010"),
    ]
    for side, sign in (("left", 1), ("right", -1)):
        name = f"wheel_{side}_link"
        parts.append(link(name, mesh("tire.stl"), cylinder(0.033, 0.018), mass=0.028, moment=2e-5))
        place = f"0 {sign * half_track} 0.023"
        parts.append(joint("base_link", name, "continuous", place, UPRIGHT, axis="0 0 1"))
    for number, place in enumerate(casters):
        name = f"caster_{number}_link"
        size = "0.030 0.009 0.020"
        parts.append(link(name, box(size), mass=0.005, moment=1e-6))
        parts.append(joint("base_link", name, "fixed", place))
    parts.append(link("base_scan", cylinder(0.055, 0.0315), mass=0.114, moment=1e-4))
    parts.append(joint("base_link", "base_scan", "fixed", "-0.032 0 0.172"))
    return robot("turtlebot3", *parts)


def ball_caster_robot(drop: float = 0.0) -> str:
    """Write two wheels and two ball casters: one a link of its own, one of the chassis."""
    front = sphere(0.02, f"0.12 0 {-0.03 - drop}")
    parts = [link("base_link", box("0.3 0.2 0.05"), front, mass=4.0, moment=0.03)]
    for side, y in (("left", 0.13), ("right", -0.13)):
        parts.append(
            link(f"{side}_wheel", cylinder(0.05, 0.02, rpy="1.5708 0 0"), mass=0.3, moment=4e-4)
        )
        parts.append(joint("base_link", f"{side}_wheel", "continuous", f"0 {y} 0", axis="0 1 0"))
    parts.append(link("rear_caster", sphere(0.02), mass=0.05, moment=1e-5))
    parts.append(joint("base_link", "rear_caster", "fixed", "-0.12 0 -0.03"))
    return robot("ball_caster_robot", *parts)


def four_wheels(name: str, radius: float, x: float, y: float, z: float, mass: float) -> str:
    """Write four wheels that do not steer: as Husky, or as a platform on Mecanum wheels."""
    parts = [
        link("base_footprint"),
        link("base_link", box(f"{2.2 * x} {1.5 * y} 0.2", "0 0 0.1"), mass=mass, moment=mass / 50),
        joint("base_footprint", "base_link", "fixed", "0 0 0.14493"),
        link("user_rail", mesh("rail.dae")),
        joint("base_link", "user_rail", "fixed", "0.27 0 0.24"),
    ]
    for end, forward in (("front", 1), ("rear", -1)):
        for side, left in (("left", 1), ("right", -1)):
            wheel = f"{end}_{side}_wheel"
            solid = cylinder(radius, 0.1143, rpy="1.570795 0 0")
            parts.append(link(wheel, mesh("wheel.dae"), solid, mass=2.6, moment=0.03))
            place = f"{forward * x} {left * y} {z}"
            parts.append(joint("base_link", wheel, "continuous", place, axis="0 1 0"))
    return robot(name, *parts)


def omni_robot() -> str:
    """Write three omni wheels around a round chassis."""
    parts = [link("base_link", cylinder(0.15, 0.06), mass=3.0, moment=0.03)]
    for number, (x, y, yaw) in enumerate(
        ((0.16, 0.0, 0.0), (-0.08, 0.138564, 2.094395), (-0.08, -0.138564, -2.094395))
    ):
        name = f"wheel_{number}"
        parts.append(link(name, cylinder(0.04, 0.025, rpy="0 1.570796 0"), mass=0.2, moment=2e-4))
        parts.append(
            joint("base_link", name, "continuous", f"{x} {y} -0.02", f"0 0 {yaw}", axis="1 0 0")
        )
    return robot("omni_robot", *parts)


def ackermann() -> str:
    """Write a car: hinges steer the front wheels, a lidar turns on top."""
    parts = [link("chassis", box("0.5 0.2 0.1", "0.16 0 0.05"), mass=5.0, moment=0.08)]
    wheel = cylinder(0.055, 0.04, rpy="1.57079632679 0 0")
    for side, y in (("left", 0.12), ("right", -0.12)):
        parts.append(link(f"{side}_rear_wheel", wheel, mass=0.3, moment=5e-4))
        parts.append(link(f"{side}_steering", mass=0.1, moment=1e-4))
        parts.append(link(f"{side}_front_wheel", wheel, mass=0.3, moment=5e-4))
        back, front = f"{side}_rear_wheel", f"{side}_steering"
        parts.append(joint("chassis", back, "continuous", f"0 {y} 0", axis="0 1 0"))
        parts.append(joint("chassis", front, "revolute", f"0.325 {y} 0", axis="0 0 1"))
        parts.append(joint(front, f"{side}_front_wheel", "continuous", "0 0 0", axis="0 1 0"))
    parts.append(link("lidar", cylinder(0.03, 0.04), mass=0.1, moment=1e-4))
    parts.append(joint("chassis", "lidar", "continuous", "0.2 0 0.15", axis="0 0 1"))
    return robot("ackermann", *parts)
