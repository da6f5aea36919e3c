"""Completion scripts, as a shell runs them."""

from __future__ import annotations

import os
import select
import shutil
import subprocess

import pytest

from axode.cli import VERBS, run

pty = pytest.importorskip("pty", reason="Windows has no such terminals")


@pytest.fixture
def script(capsys):
    def make(shell):
        assert run(["completion", shell]) == 0
        return capsys.readouterr().out

    return make


def complete(script: str, folder, *words: str) -> list[str]:
    """Return what bash offers for the last of the words."""
    listed = " ".join(f"'{word}'" for word in words)
    asked = f"{script}\nCOMP_WORDS=({listed}); COMP_CWORD={len(words) - 1}; _axode"
    asked += "; printf '%s\\n' \"${COMPREPLY[@]}\""
    done = subprocess.run(
        ["bash", "-c", asked], cwd=folder, capture_output=True, text=True, check=False
    )
    assert not done.stderr, done.stderr
    return sorted(line for line in done.stdout.splitlines() if line)


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_what_may_follow(script, tmp_path):
    bash = script("bash")
    for name in ("robot.toml", "robot.urdf", "run.npz", "run.csv", "notes.txt", "two words.toml"):
        (tmp_path / name).touch()
    (tmp_path / "study").mkdir()

    def ask(*words):
        return complete(bash, tmp_path, "axode", *words)

    assert {verb.__name__ for verb in VERBS} <= set(ask(""))
    assert ask("sim") == ["simulate"]
    assert ask("simulate", "wheeled") == ["wheeled_pendulum"]
    assert {"robot.toml", "two words.toml", "study", "four_bar"} <= set(ask("check", ""))
    assert "notes.txt" not in ask("check", "")
    assert ask("simulate", "four_bar", "--me") == ["--method"]
    assert ask("simulate", "four_bar", "--method", "r") == ["radau9", "rk4", "rodas5p"]
    assert ask("view", "four_bar", "--run", "r") == ["run.npz"]
    assert ask("inverse", "four_bar", "--motion", "r") == ["run.csv", "run.npz"]
    assert ask("sweep", "four_bar", "--store", "") == ["study"]
    assert ask("simulate", "four_bar", "--time", "") == []
    assert ask("page", "four_bar", "-o", "") == ["study"]
    assert ask("view", "four_bar", "--no") == ["--no-browser"]
    assert ask("animate", "four_bar", "--no-f") == ["--no-follow"]
    assert ask("completion", "f") == ["fish"]
    assert ask("derive", "four_bar", "--formulation", "la") == ["lagrange"]
    assert ask("unknown", "x") == []


@pytest.mark.skipif(shutil.which("fish") is None, reason="there is no fish")
def test_fish_completes_the_same(script, tmp_path):
    fish = tmp_path / "axode.fish"
    fish.write_text(script("fish"))
    for name in ("robot.toml", "run.npz", "run.csv", "notes.txt", "two words.toml"):
        (tmp_path / name).touch()
    (tmp_path / "study").mkdir()

    def ask(line):
        asked = ["fish", "--no-config", "-c", f"source axode.fish; complete -C 'axode {line}'"]
        done = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert not done.stderr, done.stderr
        return sorted(line.partition("\t")[0] for line in done.stdout.splitlines())

    assert ask("sim") == ["simulate"]
    assert ask("check two") == ["two words.toml", "two_caster_robot", "two_wheeled_cart"]
    assert ask("view four_bar --run r") == ["run.npz"]
    assert ask("page four_bar --out ") == ["study/"]
    assert ask("compare four_bar --formulation l") == ["lagrange", "legs"]
    assert ask("simulate four_bar --time ") == []
    assert ask("animate four_bar --no-f") == ["--no-follow"]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="there is no zsh")
def test_zsh_completes_the_same(script, tmp_path):
    """In an interactive shell on a terminal of its own, with the keys of a user."""
    (tmp_path / "axode.zsh").write_text(script("zsh").replace("&& compinit", "&& compinit -D"))
    (tmp_path / "run.npz").touch()
    (tmp_path / "notes.txt").touch()
    answer = 'axode() { print -r -- "<$*>"; print done; }'
    lines = [("source axode.zsh; " + answer + "; print -r done\n", "\ndone")]
    for line in ("sim", "view wheeled", "view four_bar --run ", "simulate x --method rk"):
        lines.append((f"axode {line}\t\n", "\ndone"))
    seen = _type(["zsh", "-f", "-i"], lines, tmp_path)
    for wanted in ("<simulate>", "<view wheeled_pendulum>", "--run run.npz>", "--method rk4>"):
        assert wanted in seen, seen


def _type(command: list[str], lines: list[tuple[str, str]], folder) -> str:
    """Type lines on a terminal, each after what the one before prints; return all that is seen."""
    ours, theirs = pty.openpty()
    seen, start = "", 0
    with subprocess.Popen(
        command,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=folder,
        env={**os.environ, "TERM": "dumb"},
        start_new_session=True,
    ) as process:
        try:
            for line, awaited in lines:
                os.write(ours, line.encode())
                while awaited not in seen[start:]:
                    assert select.select([ours], [], [], 30)[0], seen
                    seen += os.read(ours, 4096).decode(errors="replace").replace("\r", "")
                start = len(seen)
        finally:
            process.kill()
    os.close(ours)
    os.close(theirs)
    return seen


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_scripts_for_other_shells(script, shell):
    """Every verb and option is in them."""
    text = script(shell)
    assert all(verb.__name__ in text for verb in VERBS)
    assert "bashcompinit" in text or "__fish_seen_subcommand_from sweep' -l store" in text


def test_an_unknown_shell(capsys):
    assert run(["completion", "tcsh"]) == 2
    assert "tcsh" in capsys.readouterr().err
