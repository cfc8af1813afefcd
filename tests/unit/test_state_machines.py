"""docs/state-machines.md and the tables that it is made from."""

import ast
from pathlib import Path

import pytest

from docs.generate_state_machines import PACKAGE, PAGE, TableError, Transition, machines, parse, read, render

MODULES = sorted(PACKAGE.rglob("*.py"))


def is_machine(node: ast.stmt) -> bool:
    """A class that events are read from or timers handled by; protocols only describe such classes."""
    if not isinstance(node, ast.ClassDef) or any(isinstance(b, ast.Name) and b.id == "Protocol" for b in node.bases):
        return False
    return any(isinstance(part, ast.FunctionDef) and part.name in ("handle_timer", "next_event") for part in node.body)


def with_a_machine() -> list[Path]:
    return [path for path in MODULES if any(map(is_machine, ast.parse(path.read_text(encoding="utf-8")).body))]


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(machines()), "run `make docs`"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_every_table_parses(path: Path) -> None:
    read(path)


@pytest.mark.parametrize("path", with_a_machine(), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_every_machine_has_a_table_and_an_invariant(path: Path) -> None:
    machine = read(path)

    assert machine is not None
    assert machine.invariant.startswith("Invariant: ")


def test_the_machines_of_a_node_are_found() -> None:
    names = {path.stem for path in with_a_machine()}

    assert names >= {"mix_node", "outgoing", "probes", "peers", "keys", "retransmitter", "poisson", "outbox", "off"}


@pytest.mark.parametrize(
    ("line", "transition"),
    [
        ("new --start---> KeyRotated, single", Transition("new", "start", ("KeyRotated",), "single")),
        ("up --timer, no room-> LinkDown", Transition("up", "timer, no room", ("LinkDown",), "up")),
        ("up --dial_failed--> none", Transition("up", "dial_failed", (), "none")),
        ("a --re-sent--> True, False, b", Transition("a", "re-sent", ("True", "False"), "b")),
    ],
)
def test_a_line_is_read(line: str, transition: Transition) -> None:
    assert parse(f"    {line}", where="x:1") == transition


@pytest.mark.parametrize(
    "line",
    [
        "    two words --label---> next",
        "    State --label---> next",
        "    state -label---> next",
        "    state --label next",
        "    state --label---> ",
        "    state --label---> held, next",
        "    state --label---> Output,next",
        "    state -----> next",
        "     state --label---> next",
    ],
)
def test_a_line_that_does_not_fit_names_its_place(line: str) -> None:
    with pytest.raises(TableError, match=r"^file\.py:7: "):
        parse(line, where="file.py:7")


def test_one_bad_line_spoils_its_table(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text('"""Words.\n\n    a --b---> c\n    and this is not a line\n"""\n', encoding="utf-8")

    with pytest.raises(TableError, match=r"module\.py:4: "):
        read(module)


def test_a_page_shows_states_outputs_and_invariant(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "door.py").write_text(
        '"""A door.\n\n    shut --push---> Creak, open\n    open --kick: hard---> broken\n\n'
        'Invariant: it has two\nsides.\n"""\n',
        encoding="utf-8",
    )
    (package / "wall.py").write_text('"""A wall.\n\n    formula = 1\n"""\n', encoding="utf-8")

    page = render(machines(package), package=package)

    assert page.partition("## ")[2] == (
        "package.door\n\nA door. [Source](../src/package/door.py)\n\n```mermaid\nstateDiagram-v2\n    [*] --> shut\n"
        "    shut --> open: push / Creak\n    open --> broken: kick, hard\n    broken --> [*]\n```\n\n"
        "**Invariant:** it has two sides.\n"
    )
