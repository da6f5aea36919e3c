"""Random SDF texts, together with where everything in them is, computed here.

Links are placed in a chain of frames that are chosen at random: frames, joints, links and nested
models, with poses in radians, degrees or quaternions. What `RandomModel` holds follows from the
numbers that it writes, by products of matrices and nothing else.
"""

import numpy as np

TYPES = ("revolute", "continuous", "prismatic", "ball", "universal", "screw", "fixed")
RIGHT = (0.0, 1.5708, 1.570796, 1.5707963, 1.570796327, 3.14159, -1.5708)


def rotation(r, p, y):
    """Rz(y) Ry(p) Rx(r)."""
    cr, sr, cp, sp, cy, sy = (f(a) for a in (r, p, y) for f in (np.cos, np.sin))
    Rx = np.array([[1, 0, 0], [0, cr, -sr], [0, sr, cr]])
    Ry = np.array([[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]])
    Rz = np.array([[cy, -sy, 0], [sy, cy, 0], [0, 0, 1]])
    return Rz @ Ry @ Rx


def transform(R, p):
    """A homogeneous matrix."""
    X = np.eye(4)
    X[:3, :3], X[:3, 3] = R, p
    return X


def written(values):
    """Numbers as a file has them."""
    return " ".join(repr(float(value)) for value in values)


class RandomModel:
    """A random tree of links; `text` is the file.

    Attributes:
        links: Name, pose in the world, mass, mass centre, inertia about it in the link's axes.
        joints: Name, type, parent and child, pose in the world, axes in the joint's frame, numbers.
    """

    def __init__(self, seed, count=4, free=False, types=TYPES, special=False):
        self.rng = np.random.default_rng(seed)
        self.special = special
        self.types = types
        self.links, self.joints, inner, outer = [], [], [], []
        self.frames = {"__model__": np.eye(4)}  # in the outer model
        nested = {"__model__": np.eye(4)}
        X_N, placement = self._nested(nested, inner, count // 2)
        self.frames |= {
            f"arm::{n}" if n != "__model__" else "arm": X_N @ X for n, X in nested.items()
        }
        self._links(self.frames, outer, [f"base{k}" for k in range(count - count // 2)], "")
        self.parents = {}
        names = [name for name, *_ in self.links]
        for k, name in enumerate(names):
            parent = str(self.rng.choice(names[:k])) if k else "world"
            if k or not free:
                self._joint(outer, f"j{k}", parent, name)
        pose, X_M = self._pose("")
        self.rng.shuffle(inner)
        self.rng.shuffle(outer)
        arm = f'<model name="arm"{placement}>{"".join(inner)}</model>'
        body = "\n".join([pose, arm, *outer])
        self.text = f'<sdf version="1.9"><model name="robot">{body}</model></sdf>'
        self.links = [(n, X_M @ self.frames[n], *rest) for n, *rest in self.links]
        self.joints = [(n, t, p, c, X_M @ X, *rest) for n, t, p, c, X, *rest in self.joints]

    def _pose(self, base, tag="pose"):
        """Text and matrix of a pose relative to a named frame."""
        rng = self.rng
        place = np.round(rng.uniform(-1, 1, 3), 5)
        angles = np.round(rng.uniform(-3, 3, 3), 5)
        if self.special:
            angles = rng.choice(RIGHT, 3)
        relative = f' relative_to="{base}"' if base else ""
        form = rng.integers(3)
        if form == 0:
            text = f"<{tag}{relative}>{written([*place, *angles])}</{tag}>"
            exact = np.where(angles == 1.570796327, np.pi / 2, angles)
            return text, transform(rotation(*exact), place)
        if form == 1:
            degrees = np.round(np.degrees(angles), 3)
            text = f'<{tag}{relative} degrees="true">{written([*place, *degrees])}</{tag}>'
            return text, transform(rotation(*np.radians(degrees)), place)
        x, y, z, w = q = rng.normal(size=4)
        q = q / np.linalg.norm(q)
        x, y, z, w = q
        v = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        R = np.eye(3) + 2 * w * v + 2 * v @ v
        attributes = f'{relative} rotation_format="quat_xyzw"'
        return f"<{tag}{attributes}>{written([*place, *q])}</{tag}>", transform(R, place)

    def _base(self, frames):
        """A frame that is placed already; its own model's is the usual one."""
        name = str(self.rng.choice(list(frames)))
        return ("" if name == "__model__" else name), frames[name]

    def _nested(self, frames, parts, count):
        """Links of the nested model, and its pose, which may place another frame of it."""
        self._links(frames, parts, [f"l{k}" for k in range(count)], "arm::")
        base, X = self._base(self.frames)
        text, P = self._pose(base)
        parts.append(text)
        placed = str(self.rng.choice(list(frames)))
        placement = "" if placed == "__model__" else f' placement_frame="{placed}"'
        return X @ P @ np.linalg.inv(frames[placed]), placement

    def _links(self, frames, parts, names, prefix):
        rng = self.rng
        for name in names:
            base, X = self._base(frames)
            text, P = self._pose(base)
            mass, com_pose = rng.uniform(0.5, 2), self._pose("")
            a, b = rng.uniform(0.05, 0.1, 2)
            moments = np.round([a, b, 0.9 * (a + b)], 6)
            names_of = ("ixx", "iyy", "izz")
            tensor = "".join(
                f"<{n}>{m!r}</{n}>" for n, m in zip(names_of, moments.tolist(), strict=True)
            )
            inertial = f"{com_pose[0]}<mass>{float(mass)!r}</mass><inertia>{tensor}</inertia>"
            parts.append(f'<link name="{name}">{text}<inertial>{inertial}</inertial></link>')
            frames[name] = X @ P
            R, com = com_pose[1][:3, :3], com_pose[1][:3, 3]
            inertia = R @ np.diag(moments) @ R.T
            self.links.append((prefix + name, float(mass), com, inertia))
            frame = f"frame_{name}"
            text, P = self._pose("")
            parts.append(f'<frame name="{frame}" attached_to="{name}">{text}</frame>')
            frames[frame] = frames[name] @ P

    def _joint(self, parts, name, parent, child):
        rng = self.rng
        kind = str(rng.choice(self.types))
        text, P = self._pose("")
        X = self.frames[child] @ P  # relative to the child
        if rng.random() < 0.4:
            base, X = self._base(self.frames)
            text, P = self._pose(base or "__model__")
            X = X @ P
        axes, lines = [], []
        count = {"ball": 0, "fixed": 0, "universal": 2}.get(kind, 1)
        pair = np.linalg.qr(rng.normal(size=(3, 3)))[0].T
        for k in range(count):
            axis, named, direction = pair[k], "", pair[k] * rng.uniform(0.5, 3)
            if rng.random() < 0.5:
                base, X_B = self._base(self.frames)
                direction = X_B[:3, :3].T @ X[:3, :3] @ direction
                named = f' expressed_in="{base or "__model__"}"'
            damping = round(float(rng.uniform(0, 1)), 3)
            tag = "axis" if k == 0 else "axis2"
            lines.append(
                f"<{tag}><xyz{named}>{written(direction)}</xyz>"
                f"<dynamics><damping>{damping!r}</damping></dynamics></{tag}>"
            )
            axes.append((axis, damping))
        pitch = round(float(rng.uniform(-1, 1)), 3)
        if kind == "screw":
            lines.append(f"<screw_thread_pitch>{pitch!r}</screw_thread_pitch>")
        # a link, a frame that moves with it, or the frame of the nested model's first link
        end = parent.replace("::", "::frame_") if "::" in parent else f"frame_{parent}"
        end = end if parent != "world" and rng.random() < 0.5 else parent
        ends = f"<parent>{end}</parent><child>{child}</child>"
        parts.append(f'<joint name="{name}" type="{kind}">{text}{ends}{"".join(lines)}</joint>')
        self.joints.append((name, kind, parent, child, X, axes, pitch / (2 * np.pi)))
        self.frames[name] = X
