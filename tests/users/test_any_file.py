"""Whatever a file holds, it loads or is refused by an error of ours that says so."""

import random
import shutil
from pathlib import Path

import pytest

import axode as ax

EXAMPLES = [
    path.read_text() for path in sorted((Path(__file__).parents[2] / "examples").glob("*.toml"))
]
JUNK = [
    "0",
    "-1",
    "nan",
    "inf",
    "1e400",
    "true",
    '""',
    '"l"',
    '"l +"',
    '"t"',
    '"("',
    "[]",
    "[[]]",
    "[1, 2]",
    "[1, 2, 3]",
    '["x", "y", "z"]',
    "{ type = 3 }",
    "1979-05-27",
    '"ground"',
    '"left"',
    "[[1, 0, 0], [0, 1, 0], [0, 0, 1]]",
    "{ a = { b = [ { c = 1 } ] } }",
    '"__import__(1)"',
    "{}",
    "'''x'''",
    "99999999999999999999999999",
    '"1 / 0"',
    '"a\\u0000b"',
    "[0, [1], {}]",
]
ROUNDS = 400


def spoiled(dice):
    """An example with a few lines lost, doubled, swapped or filled with junk."""
    lines = dice.choice(EXAMPLES).split("\n")
    for _ in range(dice.randrange(1, 6)):
        k = dice.randrange(len(lines))
        match dice.randrange(6):
            case 0:
                del lines[k]
            case 1:
                lines.insert(dice.randrange(len(lines)), lines[k])
            case 2:
                lines[k] = lines[k].replace("[", "[[").replace("]", "]]")
            case 3:
                word = dice.choice(["body", "joint", "home", "l", "a.b", '"x y"'])
                lines[k] = f"[{dice.choice(['body', 'wheel', 'prescribe', 'zzz'])}.{word}]"
            case _:
                key = lines[k].partition("=")[0] if "=" in lines[k] else "surprise "
                lines[k] = f"{key}= {dice.choice(JUNK)}"
    return "\n".join(lines)


@pytest.mark.slow
def test_only_our_own_errors_come_out(tmp_path):
    dice = random.Random(9)
    path = tmp_path / "robot.toml"
    shutil.copy(Path(__file__).parents[2] / "examples" / "diffdrive.urdf", tmp_path)
    outcomes = {"loaded": 0, "MechanismError": 0, "FileError": 0}
    for _ in range(ROUNDS):
        text = spoiled(dice)
        path.write_text(text)
        try:
            again = ax.load(path)
            again.save(path)
            assert ax.load(path) == again
            outcomes["loaded"] += 1
        except ax.AxodeError as error:
            outcomes[type(error).__name__] += 1
            if isinstance(error, ax.MechanismError):
                count = len(text.split("\n"))
                assert all(1 <= fault.line <= count for fault in error.faults), error
        except Exception as error:
            pytest.fail(f"{type(error).__name__}: {error}\n{text}")
    assert all(count > ROUNDS / 20 for count in outcomes.values()), outcomes
