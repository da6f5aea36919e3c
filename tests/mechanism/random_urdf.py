"""Random robots as URDF text, as any tool might write them."""

import re

import numpy as np

from tests.peers.trees import random_inertia, random_unit

MOVING = ("revolute", "continuous", "prismatic", "planar", "floating")
KINDS = (*MOVING, "fixed")


def numbers(values):
    """All digits, so that both readers read the same."""
    return " ".join(repr(float(value)) for value in values)


def random_origin(rng):
    return (
        f'<origin xyz="{numbers(rng.uniform(-0.5, 0.5, 3))}" '
        f'rpy="{numbers(rng.uniform(-3, 3, 3))}"/>'
    )


def random_link(rng, name, *, massless=False):
    if massless:
        return f'<link name="{name}"/>'
    I = random_inertia(rng)
    entries = {
        "ixx": I[0, 0],
        "ixy": I[0, 1],
        "ixz": I[0, 2],
        "iyy": I[1, 1],
        "iyz": I[1, 2],
        "izz": I[2, 2],
    }
    tensor = " ".join(f'{key}="{numbers([value])}"' for key, value in entries.items())
    return f"""<link name="{name}"><inertial>{random_origin(rng)}
        <mass value="{numbers([rng.uniform(0.5, 3.0)])}"/><inertia {tensor}/></inertial></link>"""


def random_joint(rng, name, kind, parent, child):
    axis = (0.0, 0.0, 1.0) if kind == "planar" else random_unit(rng)
    limit = '<limit effort="50" velocity="10" lower="-3" upper="3"/>'
    return f"""<joint name="{name}" type="{kind}">{random_origin(rng)}
        <parent link="{parent}"/><child link="{child}"/>
        <axis xyz="{numbers(axis)}"/>{limit if kind != "fixed" else ""}</joint>"""


def random_robot(seed, size=7):
    """A branching robot; the kind of its first joint depends on the seed.

    Links without inertia hang on fixed joints, and between moving ones. Names are shuffled, so
    that a reader who sorts them has another order than the file.
    """
    rng = np.random.default_rng(seed)
    names = [f"part {k}/{n}" for k, n in enumerate(rng.permutation(size + 2))]
    parts = [random_link(rng, names[0])]
    path = [names[0]]
    for k in range(1, size):
        if rng.uniform() < 0.35:
            path = path[: rng.integers(1, len(path) + 1)]
        kind = KINDS[seed % len(KINDS)] if k == 1 else str(rng.choice(KINDS))
        kind = "prismatic" if kind == "floating" and k > 1 else kind
        parts += [
            random_link(rng, names[k]),
            random_joint(rng, f"hinge.{names[k]}", kind, path[-1], names[k]),
        ]
        path.append(names[k])
    bare, last = names[size:]
    kind = str(rng.choice(("fixed", "prismatic")))
    parts += [random_link(rng, bare, massless=True), random_link(rng, last)]
    parts.append(random_joint(rng, "to bare", "revolute", path[-1], bare))
    parts.append(random_joint(rng, "to last", kind, bare, last))
    return f'<?xml version="1.0"?>\n<robot name="robot {seed}">' + "\n".join(parts) + "\n</robot>\n"


# robots as rounded as files are ------------------------------------------------------------------

DIGITS = (3, 4, 5, 6, 7, 9)
NEAR = (0.0, 0.0, 1e-3, 1e-5, 1e-7, 1e-8, 1e-9, 1e-10, 1e-12)
PLACES = (0.0, 0.0, 0.1, -0.3, 1e-9, 0.5)


def rounded_robot(seed, size=7):
    """A robot whose axes are parallel or at right angles, nearly, written with few digits."""
    rng = np.random.default_rng([seed, 1])
    digits = int(rng.choice(DIGITS))
    text = random_robot(seed, size)

    def short(match):
        return f"{match[1]}{float(match[2]):.{digits}g}"

    def origin(match):
        turns = rng.choice([0, 1, -1, 2], 3) * np.pi / 2
        angles = turns + rng.choice(NEAR, 3) * rng.choice([-1, 1], 3)
        written = (f"{a:.{rng.choice([*DIGITS[1:], 11, 17])}g}" for a in angles)
        xyz = " ".join(f"{x:g}" for x in rng.choice(PLACES, 3))
        return f'<origin xyz="{xyz}" rpy="{" ".join(written)}"/>'

    def axis(match):
        a = np.zeros(3)
        a[rng.integers(3)] = rng.choice([1.0, -1.0])
        a += rng.choice([0.0, 0.0, 0.0, 1e-3, 1e-7, 1e-9, 1e-12], 3)
        return f'<axis xyz="{" ".join(map(repr, a.tolist()))}"/>'

    text = re.sub(r"<origin [^>]*/>", origin, text)
    parts = re.split(r'(<joint [^>]*type="planar">.*?</joint>)', text, flags=re.S)
    text = "".join(
        part if k % 2 else re.sub(r"<axis [^>]*/>", axis, part) for k, part in enumerate(parts)
    )
    return re.sub(r'(value="|i[xyz][xyz]=")([^"]+)', short, text)
