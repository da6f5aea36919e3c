"""Where keys stand in TOML, however it is laid out."""

import tomllib

import pytest

from axode.mechanism.files.toml.toml_lines import key_lines

EVERYTHING = r'''# a comment with [brackets] and = signs
name = "a # no comment"   # one
gravity = [
  0,  # x
  [1, 2],

  "]", # z
]
"quoted = key" = 1
'literal key'.b . "c.d" = 2
text = """
[not.a.table]
key = 3 \""" ""
"""
more = """a""""
raw = \'\'\'
[neither]
\'\'\'
inline = { a = 1, b.c = { d = [1,
2] }, "e f" = "}" }
date = 1979-05-27T07:32:00Z
empty = []

[body]
[ body . "left arm" ] # spaces
mass = 1.0
[body.'x\y'.shape]
type='box'
[[joint]]
a = 1
[[joint]]
a = 2
[joint.sub]
b = 3
[[joint.row]]
c = 4
'''.replace("\\'", "'")

EXPECTED = {
    ("name",): 2,
    ("gravity",): 3,
    ("gravity", 0): 4,
    ("gravity", 1): 5,
    ("gravity", 1, 1): 5,
    ("gravity", 2): 7,
    ("quoted = key",): 9,
    ("literal key",): 10,
    ("literal key", "b", "c.d"): 10,
    ("text",): 11,
    ("more",): 15,
    ("raw",): 16,
    ("inline",): 19,
    ("inline", "a"): 19,
    ("inline", "b", "c", "d"): 19,
    ("inline", "b", "c", "d", 1): 20,
    ("inline", "e f"): 20,
    ("date",): 21,
    ("empty",): 22,
    ("body",): 24,
    ("body", "left arm"): 25,
    ("body", "left arm", "mass"): 26,
    ("body", "x\\y"): 27,
    ("body", "x\\y", "shape", "type"): 28,
    ("joint",): 29,
    ("joint", 0, "a"): 30,
    ("joint", 1): 31,
    ("joint", 1, "a"): 32,
    ("joint", 1, "sub"): 33,
    ("joint", 1, "sub", "b"): 34,
    ("joint", 1, "row", 0, "c"): 36,
}


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_every_way_of_writing_a_key(newline):
    text = EVERYTHING.replace("\n", newline)
    tomllib.loads(text)  # the scanner is only asked about valid TOML
    lines = key_lines(text)
    assert {place: lines.get(place) for place in EXPECTED} == EXPECTED
    strangers = {"not", "neither", "key", "two"}
    assert not strangers.intersection(place[0] for place in lines)


def test_no_place_is_missed_and_none_is_invented():
    lines = key_lines(EVERYTHING)
    assert set(places(tomllib.loads(EVERYTHING))) == set(lines)


def places(value, place=()):
    """The path of everything inside a document."""
    if place:
        yield place
    items = value.items() if isinstance(value, dict) else ()
    for key, inner in enumerate(value) if isinstance(value, list) else items:
        yield from places(inner, (*place, key))


def test_a_table_stands_at_its_own_header_even_if_mentioned_before():
    assert key_lines("[a.b]\n\n[a]\nx = 1\n")["a",] == 3


def test_nothing_is_found_in_nothing():
    assert key_lines("") == key_lines("# only\n\n  # comments") == {}
