"""The JSON Schema: it admits the examples, and refuses what the reader refuses."""

import json
import re
import tomllib
from pathlib import Path

import pytest

import axode as ax
from axode.mechanism.elements.bodies import SHAPES
from axode.mechanism.elements.joints import JOINTS
from axode.mechanism.elements.wheels import WHEELS
from users.random_descriptions import random_description

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.toml"))
TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "number": (int, float),
    "null": type(None),
}


def faults(value, schema, whole, place="file"):
    """What a value has against a schema; the part of JSON Schema that pydantic writes."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        return faults(value, {**whole["$defs"][name], **without(schema, "$ref")}, whole, place)
    if "anyOf" in schema:
        tries = [faults(value, option, whole, place) for option in schema["anyOf"]]
        return [] if [] in tries else min(tries, key=len)
    if "enum" in schema and value not in schema["enum"]:
        return [f"{place}: {value!r} is none of {schema['enum']}"]
    if "const" in schema and value != schema["const"]:
        return [f"{place}: {value!r} is not {schema['const']!r}"]
    if "type" in schema:
        types = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
        number_like = isinstance(value, bool) and "boolean" not in types
        if number_like or not any(isinstance(value, TYPES[name]) for name in types):
            return [f"{place}: {value!r} is no {types}"]
    found = []
    if isinstance(value, dict):
        found += [f"{place}: no {key}" for key in schema.get("required", ()) if key not in value]
        for key, item in value.items():
            rule = schema.get("properties", {}).get(key, schema.get("additionalProperties", True))
            if rule is False:
                found.append(f"{place}: unknown {key}")
            elif rule is not True:
                found += faults(item, rule, whole, f"{place}.{key}")
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            found.append(f"{place}: {len(value)} items")
        for index, item in enumerate(value):
            found += faults(item, schema.get("items", {}), whole, f"{place}[{index}]")
    return found


def without(schema, key):
    return {name: value for name, value in schema.items() if name != key}


def quoted(data):
    """Names with dots as the reader sees them: [home] base.z is "base.z"."""
    flat = {}
    for name, value in data.items():
        inner = quoted(value) if isinstance(value, dict) else {"": value}
        flat |= {f"{name}.{rest}" if rest else name: item for rest, item in inner.items()}
    return flat


def test_there_are_examples():
    assert len(EXAMPLES) >= 4


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_fit_the_schema(path):
    schema = ax.schema()
    data = tomllib.loads(path.read_text())
    for name in ("home", "prescribe"):
        data[name] = quoted(data.get(name, {}))
    assert faults(data, schema, schema) == []


@pytest.mark.parametrize("seed", range(20))
def test_written_files_fit_the_schema(seed, tmp_path):
    random_description(seed).save(tmp_path / "robot.toml")
    schema = ax.schema()
    assert faults(tomllib.loads((tmp_path / "robot.toml").read_text()), schema, schema) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("mass = 8.0", "mas = 8.0"), "file.body.pole: unknown mas"),
        (("mass = 8.0", "mass = true"), "file.body.pole.mass: True is no"),
        (('com = [0, 0, "l"]', "com = [0, 0]"), "file.body.pole.com: 2 items"),
        (('"rolling"', '"roling"'), "file.wheel.left.type: 'roling' is none of"),
        (("[joint.base]", "[jont.base]"), "file: unknown jont"),
        (("limit = 4.0", "limt = 4.0"), "unknown limt|is no"),
    ],
)
def test_the_schema_refuses_what_the_reader_refuses(change, message, tmp_path):
    text = (ROOT / "examples" / "balancer.toml").read_text()
    assert change[0] in text
    (tmp_path / "robot.toml").write_text(text.replace(*change))
    with pytest.raises(ax.MechanismError):
        ax.load(tmp_path / "robot.toml")
    schema = ax.schema()
    data = tomllib.loads(text.replace(*change)) | {"home": {}}
    found = faults(data, schema, schema)
    assert any(re.search(message, fault) for fault in found), found


def test_the_schema_is_json_with_a_word_about_everything():
    schema = json.loads(json.dumps(ax.schema()))
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert schema["title"] == "Axode mechanism"
    tables = schema["$defs"]
    assert {"BodyTable", "JointTable", "WheelTable", "CasterTable", "SpringTable"} <= set(tables)
    for name, table in tables.items():
        assert table["description"], name
        assert table["additionalProperties"] is False, name
        for key, entry in table["properties"].items():
            assert entry.get("description"), f"{name}.{key} needs a description"
    assert tables["JointTable"]["properties"]["type"]["enum"] == list(JOINTS)
    assert tables["WheelTable"]["properties"]["type"]["enum"] == list(WHEELS)
    assert tables["ShapeTable"]["properties"]["type"]["enum"] == list(SHAPES)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_load_and_derive(path):
    mechanism = ax.load(path)
    assert mechanism.name == path.stem
    assert mechanism.derive().independent


def test_the_page_about_files_shows_files_that_load(tmp_path):
    page = (ROOT / "docs" / "start" / "from-toml.md").read_text()
    blocks = re.findall(r"```toml\n(.*?)```", page, flags=re.DOTALL)
    assert blocks
    whole = [block for block in blocks if block.startswith("name =")]
    assert whole, "the page shows one whole file"
    for block in whole:
        (tmp_path / "robot.toml").write_text(block)
        ax.load(tmp_path / "robot.toml").derive()
    for block in blocks:
        data = tomllib.loads(block)
        schema = ax.schema()
        for name in ("home", "prescribe"):
            data[name] = quoted(data.get(name, {}))
        assert faults(data, schema, schema) == []


def test_the_page_shows_the_errors_as_they_are(tmp_path, monkeypatch):
    page = (ROOT / "docs" / "start" / "from-toml.md").read_text()
    wrong = re.search(r"```toml title=\"wrong.toml\"\n(.*?)```", page, flags=re.DOTALL)[1]
    shown = re.search(r"```text\n(axode.*?|MechanismError.*?)```", page, flags=re.DOTALL)[1]
    monkeypatch.chdir(tmp_path)
    Path("wrong.toml").write_text(wrong)
    with pytest.raises(ax.MechanismError) as caught:
        ax.load("wrong.toml")
    assert shown.strip() == f"MechanismError: {caught.value}"
