"""Model files as an attacker writes them: any structure, and the checksums right."""

from __future__ import annotations

import copy
import hashlib
import json
import random
import struct
from typing import Any

import axode as ax

MAGIC, VERSION, PREFIX, DIGEST = b"axode-model\n", 2, struct.Struct("<II"), 32
TAPE_MAGIC = b"axode-tape\n"
JUNK: list[Any] = [
    None,
    True,
    -1,
    0,
    3,
    2**31,
    2**63,
    10**400,
    0.5,
    float("nan"),
    float("inf"),
    -1e308,
    "",
    "q",
    "[",
    "\x1b[31mred",
    "x\n",
    "\ud800",
    "a" * 5000,
    [],
    [[]],
    {},
    {"a": 1},
    [0] * 1000,
    "nu",
    [["q", [2]]],
    "forward_dynamics",
    [1e9],
]
Path = tuple[str | int, ...]


def cart() -> ax.Mechanism:
    """A cart with a pendulum: small, and with each kind of name."""
    made = ax.Mechanism("cart")
    made.add_body("chassis", mass=2.0, inertia=(0.1, 0.1, 0.1), shape=ax.Box((0.3, 0.2, 0.1)))
    made.add_joint("slide", ax.Prismatic("x"), parent="ground", child="chassis")
    made.add_body("bob", mass=ax.Parameter("m", 0.5), com=(0, 0, -0.3), inertia=(0.01, 0.01, 0.01))
    made.add_joint("swing", ax.Revolute("y"), parent="chassis", child="bob")
    made.add_motor("push", "slide", limit=5.0)
    made.add_damper("drag", "swing", coefficient=0.1)
    return made


def split(data: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """Description and tapes of a model file."""
    start = len(MAGIC) + PREFIX.size
    _, size = PREFIX.unpack_from(data, len(MAGIC))
    header = json.loads(data[start : start + size])
    blobs, position = [], start + size
    for _, length in header["functions"]:
        blobs.append(data[position : position + length])
        position += length
    return header, blobs


def joined(header: dict[str, Any], blobs: list[bytes]) -> bytes:
    """The file of a description and of tapes, with its checksum."""
    text = json.dumps(header).encode()
    body = b"".join((MAGIC, PREFIX.pack(VERSION, len(text)), text, *blobs))
    return body + hashlib.sha256(body).digest()


def changed_tape(blob: bytes, dice: random.Random) -> bytes:
    """A tape with something in its description or its arrays changed, signed again."""
    start = len(TAPE_MAGIC) + PREFIX.size
    _, size = PREFIX.unpack_from(blob, len(TAPE_MAGIC))
    header, arrays = json.loads(blob[start : start + size]), bytearray(blob[start + size : -DIGEST])
    if dice.random() < 0.5:
        change(header, dice)
    elif arrays:
        for _ in range(dice.randrange(1, 5)):
            arrays[dice.randrange(len(arrays))] = dice.choice([0, 1, 2, 5, 44, 127, 255])
    text = json.dumps(header).encode()
    body = TAPE_MAGIC + PREFIX.pack(1, len(text)) + text + bytes(arrays)
    return body + hashlib.sha256(body).digest()


def change(data: Any, dice: random.Random) -> None:
    """Put junk, or another entry's value, somewhere into JSON; lose or repeat an entry."""
    places = list(_places(data))
    parent, key = dice.choice(places)
    match dice.randrange(6):
        case 0:
            del parent[key]
        case 1 if isinstance(parent, list):
            parent.insert(dice.randrange(len(parent) + 1), copy.deepcopy(parent[key]))
        case 2:
            other, entry = dice.choice(places)
            parent[key] = json.loads(json.dumps(other[entry]))
        case _:
            parent[key] = copy.deepcopy(dice.choice(JUNK))


def _places(data: Any) -> Any:
    for key in list(data) if isinstance(data, dict) else range(len(data)):
        yield data, key
        if isinstance(data[key], dict | list):
            yield from _places(data[key])


def mutant(data: bytes, dice: random.Random) -> bytes:
    """A model file with something in it changed, signed again."""
    header, blobs = split(data)
    for _ in range(dice.choice([1, 1, 2, 3])):
        match dice.randrange(4):
            case 0:
                change(header["scene"], dice)
            case 1:
                place = dice.randrange(len(blobs))
                blobs[place] = changed_tape(blobs[place], dice)
                header["functions"][place][1] = len(blobs[place])
            case _:
                change(header["facts"] if dice.random() < 0.8 else header, dice)
        if set(header) != {"facts", "scene", "functions"}:
            break
        if not all(isinstance(header[name], dict) and header[name] for name in ("facts", "scene")):
            break
        functions = header["functions"]
        if not isinstance(functions, list) or len(functions) != len(blobs):
            break
        if not all(isinstance(entry, list) and len(entry) == 2 for entry in functions):
            break
    return joined(header, blobs)
