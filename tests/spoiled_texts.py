"""Texts of mechanism files and meshes that are right, and ways to spoil them."""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TypeAlias

import axode as ax
from axode.mechanism.files.toml.toml_writer import text_of
from tests.mechanism import mjcf_models, test_urdf_loops
from tests.mechanism.random_urdf import random_robot, rounded_robot
from tests.show import mesh_files
from tests.users.random_descriptions import random_description

EXAMPLES = Path(__file__).parents[1] / "examples"
NUMBERS = (
    "nan",
    "-inf",
    "1e400",
    "-1e308",
    "1e-320",
    "0",
    "-0.0",
    "1e",
    "0x10",
    "1_000",
    "٣",
    "1,5",
    "9" * 400,
    "9" * 5000,
    "1e" + "9" * 40,
    "0." + "0" * 3000 + "1",
    "1 2 3 4 5 6 7",
    "",
)
WORDS = (
    "world",
    "ground",
    "base",
    "",
    " ",
    "\u202e\u0000a",
    "é" * 300,
    "😀",
    "a.b",
    "..",
    "/etc/passwd",
    "../../x.xml",
    "[x]",
    "${x}",
    "__model__",
    "a::b",
    "'",
    "&lt;&#0;",
    "true",
    "-1",
    "%s%n",
    "x" * 5000,
)
TAGS = (
    "link",
    "joint",
    "body",
    "geom",
    "gazebo",
    "include",
    "mimic",
    "model",
    "frame",
    "default",
    "equality",
    "loop",
    "constraint",
    "inertial",
    "pose",
    "attach",
    "replicate",
    "sdf",
    "robot",
    "mujoco",
)
PIECES = (
    '<!DOCTYPE x [<!ENTITY a "b">]>',
    '<!DOCTYPE x SYSTEM "file:///etc/passwd">',
    "<![CDATA[",
    "]]>",
    "<!--",
    "-->",
    "<?xml version='1.0' encoding='utf-7'?>",
    "<?xml version='1.0' encoding='UTF-16'?>",
    "&a;",
    '<include file="robot.xml"/>',
    "<include><uri>model://x</uri></include>",
    '<include file="/dev/zero"/>',
    "\x00",
    "\ufeff",
    '[extends]\nfile = "robot.toml"\n',
    '[extends]\nfile = "/dev/zero"\n',
    '[extends]\nfile = "../robot.urdf"\nfolder = "/"\n',
    "a.a.a.a = 1\n",
    "[[a]]\n",
    '"""',
    "#",
)
MOST_CHARACTERS = 3 << 20
Change: TypeAlias = Callable[[random.Random, str, str], str]
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d+\.?\d*(?:[eE][-+]?\d+)?")
_VALUE = re.compile(r'"[^"\n]*+"')
_ELEMENT = re.compile(r"<(\w[\w:]*+)[^<>]*+>(?:[^<]*+</\1>)?")
_TAG = re.compile(r"(?<=<)\w[\w:]*|(?<=</)\w[\w:]*")
_LINE = re.compile(r"[^\n]*+(?:\n|\Z)")


EXTENSIONS = (
    '[contact.slider]\ntype = "ball"\nbody = "slider"\nradius = 0.03\nlateral = "free"\n',
    '[contact.left]\ntype = "rolling"\nbody = "left_wheel"\nradius = 0.08\naxis = "z"\n',
    '[motor.extra]\njoint = "left_wheel_joint"\nlimit = 2.0\n[home]\nleft_wheel_joint = 0.1\n',
    '[loop.rod]\ntype = "spherical"\nparent = "left_wheel"\nchild = "right_wheel"\n',
    '[damper.left]\njoint = "left_wheel_joint"\ncoefficient = 0.1\n',
)
NESTED = """<sdf version="1.9"><model name="m" canonical_link="a">
  <frame name="f"><pose relative_to="arm::tip">1 0 0 0 0 0.5</pose></frame>
  <link name="a"><pose relative_to="f" degrees="true">0 0 1 90 0 0</pose>
    <inertial><mass>2</mass><pose>0 0 0.1 0 0 0</pose>
      <inertia><ixx>0.1</ixx><iyy>0.1</iyy><izz>0.1</izz></inertia></inertial></link>
  <model name="arm" placement_frame="tip"><pose>0 1 0 0 0 0</pose>
    <link name="tip"><inertial><mass>1</mass></inertial></link></model>
  <joint name="j" type="revolute"><parent>a</parent><child>arm::tip</child>
    <axis><xyz expressed_in="__model__">0 1 0</xyz><limit><effort>3</effort></limit>
      <dynamics><damping>0.1</damping><spring_stiffness>2</spring_stiffness></dynamics></axis>
  </joint>
  <joint name="k" type="universal"><parent>world</parent><child>a</child>
    <axis><xyz>1 0 0</xyz></axis><axis2><xyz>0 1 0</xyz></axis2></joint>
</model></sdf>
"""


def load(path: Path) -> object:
    """Read a mechanism file."""
    return ax.load(path)


@dataclass(frozen=True)
class Corpus:
    """Valid texts for one reader by the endings of their files, and the files beside them."""

    texts: dict[str, list[str]]
    beside: dict[str, str] = field(default_factory=dict)
    read: Callable[[Path], object] = load
    encoding: str = "utf-8"

    def draw(self, dice: random.Random) -> tuple[str, bytes]:
        """Spoil a text; return the ending of its file too."""
        suffix = dice.choice(list(self.texts))
        return suffix, spoil(dice, *dice.choices(self.texts[suffix], k=2), self.encoding)


@cache
def corpora() -> dict[str, Corpus]:
    """Valid texts by reader."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # files that are written cannot hold everything
        return _corpora()


def _corpora() -> dict[str, Corpus]:
    paths = sorted(EXAMPLES.glob("*.toml"))
    described = [ax.load(path) for path in paths]
    toml = [path.read_text() for path in paths]
    toml += [text_of(random_description(seed)) for seed in range(12)]
    drive = (EXAMPLES / "diffdrive.urdf").read_text()
    head = '[extends]\nfile = "diffdrive.urdf"\nbase = "floating"\n'
    bare = head + 'remove = ["motor.*", "damper.*"]\n'
    extended = [head, head + "strict = true\n", bare, bare + "".join(EXTENSIONS)]
    extended += [bare + extension for extension in EXTENSIONS]
    closures = {**test_urdf_loops.SPHERICAL, **test_urdf_loops.REVOLUTE, **test_urdf_loops.WELDED}
    urdf = [test_urdf_loops.TREE.replace("CLOSURE", text) for text in closures.values()]
    urdf += [drive, *(str(robot.to_urdf()) for robot in described)]
    urdf += [make(seed) for make in (random_robot, rounded_robot) for seed in range(6)]
    mjcf = [*mjcf_models.TREES.values(), *mjcf_models.LOOPS.values(), mjcf_models.CART]
    mjcf += [str(robot.to_mjcf()) for robot in described]
    return {
        "toml": Corpus({".toml": toml}),
        "extends": Corpus({".toml": extended}, {"diffdrive.urdf": drive}),
        "urdf": Corpus({".urdf": urdf}),
        "mjcf": Corpus({".xml": mjcf}),
        "sdf": Corpus({".sdf": [NESTED, *(str(robot.to_sdf()) for robot in described)]}),
        "meshes": mesh_corpus(),
    }


def mesh_corpus() -> Corpus:
    """Meshes of a box in every format, which are drawn; bytes are letters of Latin-1."""
    texts: dict[str, list[str]] = {}
    for suffix, data in mesh_files.boxes():
        texts.setdefault(f".{suffix}", []).append(data.decode("latin-1"))
    beside = {"box.mtl": "newmtl red\nKd 1 0 0\n"}
    return Corpus(texts, beside, mesh_files.draw, "latin-1")


def spoil(dice: random.Random, text: str, other: str, encoding: str = "utf-8") -> bytes:
    """Change a text in a few places, of which one may come from another text."""
    for _ in range(dice.choice((1, 1, 2, 3, 6))):
        text = dice.choice(CHANGES)(dice, text, other)
        if len(text) > MOST_CHARACTERS:
            break
    if dice.random() < 0.02:
        return text.encode("utf-16", errors="replace")
    binary = encoding != "utf-8"
    data = bytearray(text.encode(encoding, errors="replace" if binary else "surrogatepass"))
    if dice.random() < (0.7 if binary else 0.1):
        for _ in range(dice.randrange(1, 6)):
            place = dice.randrange(len(data) + 1)
            data[place : place + dice.randrange(3)] = dice.randbytes(dice.randrange(3))
    return bytes(data)


def _replace(pattern: re.Pattern[str], words: Callable[[random.Random], str]) -> Change:
    """Change one place that a pattern finds into a word."""

    def change(dice: random.Random, text: str, other: str) -> str:
        found = _pick(dice, pattern, text)
        return text[: found[0]] + words(dice) + text[found[1] :]

    return change


def _pick(dice: random.Random, pattern: re.Pattern[str], text: str) -> tuple[int, int]:
    """Where a pattern is found, at random; else any place."""
    start = dice.randrange(len(text) + 1)
    found = pattern.search(text, start) or pattern.search(text)
    return found.span() if found else (start, start)


def _swap_values(dice: random.Random, text: str, other: str) -> str:
    """Write one value of a text in the place of another."""
    (a, b), (c, d) = _pick(dice, _VALUE, text), _pick(dice, _VALUE, other)
    return text[:a] + other[c:d] + text[b:]


def _repeat(dice: random.Random, text: str, other: str) -> str:
    """Write an element or a line again, once or very often."""
    a, b = _pick(dice, dice.choice((_ELEMENT, _LINE)), text)
    most = MOST_CHARACTERS // (b - a + 1)
    return text[:b] + text[a:b] * min(dice.choice((1, 1, 1, 2, 50, 3000)), most) + text[b:]


def _remove(dice: random.Random, text: str, other: str) -> str:
    a, b = _pick(dice, dice.choice((_ELEMENT, _LINE, _VALUE, _TAG)), text)
    return text[:a] + text[b:]


def _move(dice: random.Random, text: str, other: str) -> str:
    """Move an element or a line, or bring one from another text."""
    a, b = _pick(dice, dice.choice((_ELEMENT, _LINE)), other)
    place = _pick(dice, dice.choice((_ELEMENT, _LINE)), text)[0]
    return text[:place] + other[a:b] + text[place:]


def _nest(dice: random.Random, text: str, other: str) -> str:
    """Wrap an element, or a value, into very many others."""
    depth = dice.choice((1, 3, 100, 2000, 20_000))
    if "<" in text:
        tag = dice.choice(TAGS)
        a, b = _pick(dice, _ELEMENT, text)
        return f"{text[:a]}{f'<{tag}>' * depth}{text[a:b]}{f'</{tag}>' * depth}{text[b:]}"
    a, b = _pick(dice, _NUMBER, text)
    return text[:a] + "[" * depth + text[a:b] + "]" * depth + text[b:]


def _cut(dice: random.Random, text: str, other: str) -> str:
    """Cut the text, or go on with the end of another."""
    end = other[dice.randrange(len(other)) :] if dice.random() < 0.5 else ""
    return text[: dice.randrange(len(text) + 1)] + end


def _insert(dice: random.Random, text: str, other: str) -> str:
    place = dice.choice((0, dice.randrange(len(text) + 1), _pick(dice, _ELEMENT, text)[0]))
    return text[:place] + dice.choice(PIECES) + text[place:]


CHANGES: tuple[Change, ...] = (
    _replace(_NUMBER, lambda dice: dice.choice(NUMBERS)),
    _replace(_NUMBER, lambda dice: repr(dice.uniform(-3, 3))),
    _replace(_VALUE, lambda dice: f'"{dice.choice(WORDS)}"'),
    _replace(_VALUE, lambda dice: f'"{dice.choice(NUMBERS)}"'),
    _replace(_TAG, lambda dice: dice.choice(TAGS)),
    _swap_values,
    _swap_values,
    _repeat,
    _remove,
    _move,
    _nest,
    _cut,
    _insert,
)
