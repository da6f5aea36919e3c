"""Random descriptions that are valid and use everything a description may hold.

Built from a seed rather than drawn number by number: a mechanism holds hundreds of numbers.
"""

import math
import random

import numpy as np

import axode as ax
from axode.mechanism.elements.bodies import Mesh
from axode.mechanism.elements.forces import KINDS
from axode.mechanism.values import expressions
from axode.mechanism.values.expressions import Expression, Operation, Time, numeric

NAMES = [
    "arm",
    "left.front",
    'the "big" one',
    "bras été",
    "µ",
    "a'b",
    "x\\y",
    "#1",
    "a[0]",
    "= 3",
    "{",
    "机器人",
    "'''",
    '"""',
    "t",
    "pi",
]
PARAMETERS = [ax.Parameter("l", 0.4), ax.Parameter("mass_1", 3.0), ax.Parameter("kappa", -0.25)]
SPECIAL = [0.0, -0.0, 1 / 3, 5e-324, 1e300, -1e-300, float(np.nextafter(1.0, 2.0)), 0.1 + 0.2]
AXES = [
    (1.0, 0.0, 0.0),
    (0.0, -1.0, 0.0),
    (0.0, -0.0, 1.0),
    (0.6, 0.0, -0.8),
    (2 / 3, -2 / 3, 1 / 3),
]
JOINTS = [
    lambda d: ax.Revolute(d.axis()),
    lambda d: ax.Prismatic(d.axis()),
    lambda d: ax.Screw(d.axis(), d.scalar()),
    lambda d: ax.Cylindrical(d.axis()),
    lambda d: ax.Universal(),
    lambda d: ax.Universal((0.6, 0.0, -0.8), "y"),
    lambda d: ax.Spherical(),
    lambda d: ax.Planar(d.axis()),
    lambda d: ax.Fixed(),
]
WHEELS = [
    lambda d: ax.Rolling(d.positive(), d.slip(), d.slip(), **d.contact_law()),
    lambda d: ax.Ball(d.positive(), d.slip(), d.slip(), **d.contact_law()),
    lambda d: ax.Mecanum(d.positive(), d.among([0.3, 1.2, PARAMETERS[0]]), **d.contact_law()),
    lambda d: ax.Omni(d.positive(), **d.contact_law()),
    lambda d: ax.Skate(d.among([0.0, d.positive()]), **d.contact_law()),
    lambda d: ax.Point(d.among([0.0, d.positive()]), **d.contact_law(ideal=False)),
]


class Dice:
    """Random numbers, formulas and the small things made of them."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.among = self.random.choice

    def number(self):
        return self.among(
            [self.among(SPECIAL), self.random.gauss(0, 10), round(self.random.random(), 2)]
        )

    def formula(self, depth=3, leaves=()):
        """A formula of any form."""
        if depth == 0 or self.random.random() < 0.2:
            return self.among([*PARAMETERS, *leaves])
        inner = self.formula(depth - 1, leaves)
        if self.random.random() < 0.3:
            unary = [name for name in expressions.NAMES if expressions.takes(name, 1)]
            return Operation(self.among(["neg", *unary]), (inner,))
        pair = [inner, self.among([self.number(), self.formula(depth - 1, leaves)])]
        self.random.shuffle(pair)
        divides = ["/", "%"] if pair[1] != 0.0 else []  # by zero is refused
        return Operation(self.among(["+", "-", "*", *divides, "**", "min", "atan2"]), tuple(pair))

    def scalar(self):
        """A number or a formula with a finite value."""
        if self.random.random() < 0.7:
            return self.number()
        formula = self.formula()
        return formula if abs(numeric(formula)) < 1e100 else PARAMETERS[0]

    def positive(self):
        """A number or a formula of moderate size."""
        formula = self.formula()
        size = abs(numeric(formula))
        number = self.random.uniform(0.01, 100.0)
        return self.among(
            [number, number, formula * formula + 0.5 if size < 1e3 else PARAMETERS[0]]
        )

    def vector(self):
        return (self.scalar(), self.scalar(), self.scalar())

    def axis(self):
        return self.among(AXES)

    def slip(self):
        return self.among(["rigid", "free"])

    def friction(self):
        """One coefficient, or a static and a kinetic one."""
        kinetic = self.positive()
        pair = (kinetic + self.among([0.0, self.positive()]), kinetic)
        return self.among([None, kinetic, pair])

    def contact_law(self, ideal=True):
        """What a contact that may slip and lift takes; nothing of it if it is ideal."""
        friction = self.friction()
        if friction is None and ideal:
            return {}
        return {
            "friction": friction,
            "restitution": self.among([0.0, 1.0, 1 / 3, PARAMETERS[0]]),
            "rolling_resistance": self.among([0.0, self.positive()]),
            "scrub": self.among([0.0, self.positive()]),
        }

    def stops(self):
        """Dry friction and stops of a joint with one coordinate."""
        low = self.among([None, self.random.uniform(-9.0, 0.0), PARAMETERS[2]])
        stops = (low, self.among([None, self.positive(), PARAMETERS[0]]))
        stopped = {"stops": stops, "restitution": self.among([0.0, 1.0, 1 / 3, PARAMETERS[0]])}
        return {"friction": self.friction()} | self.among([{}, stopped])

    def rotation(self):
        angles = [self.random.uniform(-3, 3) for _ in range(3)]
        q = np.array([1.0, *angles]) / math.hypot(1.0, *angles)
        c, s = math.cos(angles[0]), math.sin(angles[0])
        l, _, kappa = PARAMETERS
        matrix = ((c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0))
        return self.among([(0.0, 0.0, 0.0), tuple(angles), (l, l / 2.0, -kappa), tuple(q), matrix])

    def inertia(self):
        a, b = self.random.uniform(0.1, 10.0), self.random.uniform(0.1, 10.0)
        return self.among(
            [
                (a, b, max(a, b)),
                ax.Inertia.rod(self.positive(), b, self.axis()),
                ax.Inertia.disk(self.positive(), b, self.axis()),
                ax.Inertia(a, a * 1.5, a * 1.25, a * 0.1, -a * 0.1, 0.0),
                ax.Inertia.point(),
                ax.Inertia(a, -b, 5.0 * a, unphysical=True),
                ax.Inertia.planar(self.positive(), self.axis()),
            ]
        )

    def shape(self):
        return self.among(
            [
                None,
                ax.Box((self.positive(), 1.0, 2.0), self.vector()),
                ax.Box((1.0, 1.0, 2.0), self.vector(), self.rotation(), (0.0, 0.5, 1.0)),
                (ax.Sphere(1.0, colour=(0.1, 0.0, -0.0)), ax.Box((1.0, 1.0, self.positive()))),
                ax.Cylinder(self.positive(), 1.0, self.axis(), self.vector()),
                ax.Sphere(self.positive(), self.vector()),
                Mesh("package://a/b c.stl", (1.0, -1.0, 1e-3), self.vector(), self.rotation()),
            ]
        )

    def motor(self):
        limit = self.among([None, self.positive(), math.inf])
        return ax.Motor(limit, self.positive(), self.positive())


class Growing:
    """A mechanism under construction; each step adds one random thing."""

    def __init__(self, seed):
        self.dice = Dice(seed)
        self.mechanism = ax.Mechanism(self.dice.among(NAMES), self.dice.vector())
        self.count = 0

    def name(self):
        self.count += 1
        return f"{self.dice.among(NAMES)}{self.count}"

    def carrier(self):
        return self.dice.among(["ground", *(b.name for b in self.mechanism.bodies)])

    def place(self):
        dice = self.dice
        return {
            "at": dice.vector(),
            "rotation": dice.rotation(),
            "child_at": dice.vector(),
            "child_rotation": dice.rotation(),
        }

    def body(self):
        dice, parent, name = self.dice, self.carrier(), self.name()
        joint = dice.among([*JOINTS, lambda d: ax.Floating()])(dice)
        self.mechanism.add_body(
            name,
            mass=dice.positive(),
            com=dice.vector(),
            inertia=dice.inertia(),
            shape=dice.shape(),
        )
        names = {
            "coordinates": [f"{name} q{k}" for k in range(len(joint.coordinate_names))],
            "speeds": [f"{name} v{k}" for k in range(joint.dof)],
        }
        law = dice.stops() if len(joint.coordinate_names) == 1 else {}
        self.mechanism.add_joint(
            name, joint, parent=parent, child=name, **self.place(), **dice.among([names, {}]), **law
        )

    def wheel(self):
        dice, on = self.dice, self.carrier()
        wheel = dice.among(WHEELS)(dice)
        self.mechanism.add_wheel(
            self.name(),
            wheel,
            on=on,
            at=dice.vector(),
            axis=dice.axis(),
            mass=dice.positive(),
            motor=dice.among([dice.motor(), True, None]) if wheel.has_axis else None,
            inertia=(1.0, 1.0, 1.0),
            ground=dice.among([None, on, ax.Plane(dice.axis(), dice.vector(), on)]),
        )

    def caster(self):
        dice = self.dice
        self.mechanism.add_caster(
            self.name(),
            ax.Rolling(0.1),
            on=self.carrier(),
            mass=1.0,
            at=dice.vector(),
            trail=dice.scalar(),
            drop=dice.scalar(),
        )

    def contact(self):
        dice = self.dice
        self.mechanism.add_contact(
            self.name(),
            dice.among(WHEELS)(dice),
            at=dice.vector(),
            body=self.mechanism.bodies[-1],
            axis=dice.axis(),
        )

    def loop(self):
        first, last = self.mechanism.bodies[0], self.mechanism.bodies[-1]
        parent = "ground" if first == last else first
        add = self.dice.among([self.mechanism.add_loop, self.mechanism.add_joint])
        joint = self.dice.among(JOINTS)(self.dice)
        add(self.name(), joint, parent=parent, child=last, **self.place())

    def force(self):
        dice, name, mechanism = self.dice, self.name(), self.mechanism
        speeds = [speed for c in mechanism.connections for speed in c.speeds]
        coordinates = [name for c in mechanism.connections for name in c.coordinates]
        ends = {
            "parent": "ground",
            "child": mechanism.bodies[-1],
            "at": dice.vector(),
            "child_at": dice.vector(),
        }
        kind = dice.among(["motor", "damper", "spring", "strut", "dashpot", "wrench"])
        if kind == "motor" and speeds:
            mechanism.add_motor(
                name,
                dice.among(speeds),
                motor=dice.motor(),
                input=dice.among([None, f"{name} input"]),
            )
        elif kind == "damper" and speeds:
            mechanism.add_damper(name, dice.among(speeds), coefficient=dice.positive())
        elif kind == "spring" and coordinates:
            mechanism.add_spring(
                name, dice.among(coordinates), stiffness=dice.positive(), rest=dice.scalar()
            )
        elif kind == "strut":
            mechanism.add_spring(
                name, stiffness=dice.positive(), rest=dice.scalar(), damping=dice.positive(), **ends
            )
        elif kind == "dashpot":
            mechanism.add_damper(name, coefficient=dice.positive(), **ends)
        else:
            mechanism.add_wrench(
                name, ends["child"], at=ends["at"], frame=dice.among(["world", "body"])
            )

    def coupling(self):
        """Between coordinates, or between speeds, of joints that are no quaternions."""
        dice, joints = self.dice, self.mechanism.connections
        single = [c.name for c in joints if len(c.speeds) == 1]
        speeds = [speed for c in joints for speed in c.speeds]
        if len(single) > 1 and dice.random.random() < 0.5:
            named, offset = single, dice.scalar()
        else:
            named, offset = speeds, 0.0
        if len(named) > 1:
            count = dice.random.randrange(2, min(4, len(named)) + 1)
            terms = [
                (name, dice.among([dice.positive(), -dice.positive()]))
                for name in dice.random.sample(named, count)
            ]
            self.mechanism.add_coupling(self.name(), terms, offset=offset)

    def measure(self):
        dice, body = self.dice, self.mechanism.bodies[-1]
        self.mechanism.measure(
            self.name(),
            dice.among(list(KINDS)),
            body=body,
            at=dice.vector(),
            other=self.carrier(),
            other_at=dice.vector(),
        )

    def motion(self):
        named = [
            name
            for c in self.mechanism.connections
            for name, own in zip(c.coordinates, c.joint.coordinate_names, strict=True)
            if not own.startswith("q")
        ]
        taken = {p.coordinate for p in self.mechanism.prescribed}
        free = [name for name in named if name not in taken]
        if free:
            motion = self.dice.among([self.dice.number(), self.dice.formula(3, [Time()]) + Time()])
            assert isinstance(motion, float | Expression)
            self.mechanism.prescribe(self.dice.among(free), motion)
            self.mechanism.set_home({self.dice.among(named): self.dice.number()})


def random_description(seed):
    """A valid mechanism of a few parts of every kind."""
    growing = Growing(seed)
    growing.body()
    steps = [
        growing.body,
        growing.body,
        growing.wheel,
        growing.caster,
        growing.contact,
        growing.loop,
        growing.force,
        growing.force,
        growing.motion,
        growing.measure,
        growing.coupling,
    ]
    for _ in range(growing.dice.random.randrange(10)):
        growing.dice.among(steps)()
    return growing.mechanism
