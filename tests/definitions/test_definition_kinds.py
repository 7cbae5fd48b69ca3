"""The kinds that come with the program, read from files."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sample_definitions import NOW

from nightporter import destinations, runners
from nightporter.definitions import Checks, grammar, read, render
from nightporter.errors import BadDefinition, BadInput
from nightporter.words import Definition, Destination, Target


def shipped(keys: str) -> Definition:
    return read(f"---\n{keys}\n---\n", path="/desk/a.md", format="markdown", default_timezone="UTC", now=NOW)


@pytest.mark.parametrize(
    ("kind", "check", "known"),
    [
        *((kind, runners.checks()[kind], known) for kind, known in grammar.TARGET_KEYS.items()),
        *((kind, destinations.checks()[kind], known) for kind, known in grammar.DESTINATION_KEYS.items()),
    ],
)
def test_the_grammar_knows_the_keys_that_the_kind_itself_takes(
    kind: str, check: runners.Check, known: tuple[str, ...]
) -> None:
    with pytest.raises(BadInput) as caught:
        check({"no-such-key": 1})
    assert caught.value.why == (f"its keys are {', '.join(known)}" if known else "it has no keys")


def test_every_shipped_kind_but_code_can_be_written_in_a_file() -> None:
    checks = Checks.shipped()
    assert set(grammar.TARGET_KEYS) | {"function"} == set(checks.targets)
    assert set(grammar.DESTINATION_KEYS) == set(checks.destinations)


@pytest.mark.parametrize(
    ("written", "kind", "part"),
    [
        ("{script: ./report.sh --all}", "script", {"file": "/desk/report.sh", "args": ["--all"]}),
        ("{script: ~/report.sh}", "script", {}),
        ("{script: date | wc}", "script", {"command": "date | wc"}),
        ("{script: [./a.sh, b]}", "script", {"command": ["/desk/a.sh", "b"]}),
        ("{script: {file: bin/a.sh, cwd: data, memory: 1m}}", "script",
         {"file": "/desk/bin/a.sh", "cwd": "/desk/data", "memory": 1 << 20}),
        ("{python: reports.daily:main}", "python", {"call": "reports.daily:main", "path": ["/desk"]}),
        ("{python: {call: a:b, args: {day: 1}, path: lib}}", "python", {"args": {"day": 1}, "path": ["/desk/lib"]}),
        ("{http: https://example.com/run}", "http", {"url": "https://example.com/run", "method": "GET"}),
        ("{http: https://example.com/run, json: {a: [1, true]}}", "http", {"method": "POST", "json": {"a": [1, True]}}),
        ("{echo: Hello.}", "echo", {"text": "Hello."}),
        ("noop", "noop", {}),
    ],
)
def test_a_shipped_target_completes_its_config(written: str, kind: str, part: dict[str, object]) -> None:
    target = shipped(f"target: {written}").target
    assert target.kind == kind
    assert {key: target.config[key] for key in part} == part


@pytest.mark.parametrize(
    ("written", "where", "says"),
    [
        ("target: {script: {command: date, cwd: 5}}", (2, 34), "`script.cwd`"),
        ("target:\n  script:\n    command: date\n    env: {A: [1]}", (5, 5), "`script.env.A`"),
        ("target: {script: }", (2, 10), "`script` needs `command`"),
        ("target: {python: reports}", (2, 18), "package.module:function"),
        ("target: {http: ftp://example.com}", (2, 16), "http.url"),
        ("target: {http: https://example.com, json: 1, body: x}", (2, 37), "both `json` and `body`"),
        ("target: noop\ndeliver: [{webhook: https://example.com}]", (3, 12), "`webhook` needs `secret`"),
        ("target: noop\ndeliver: [{file: ../x}]", (3, 18), "`file.path`"),
        ("target: noop\ndeliver: [{webhook: https://example.com/in, secret: whsec_abc}]", (3, 45), "`webhook.secret`"),
        ("target: noop\ndeliver: [{file: /srv/x.md}]", (3, 18), "`file.path`"),
        ("target: noop\ndeliver: [{file: 'a{{b}}'}]", (3, 18), "unknown field"),
    ],
)
def test_what_a_kind_refuses_is_refused_where_it_stands(written: str, where: tuple[int, int], says: str) -> None:
    with pytest.raises(BadDefinition) as caught:
        shipped(written)
    assert says in str(caught.value)
    assert (caught.value.line, caught.value.column) == where


def test_what_a_kind_fills_in_by_itself_is_not_written() -> None:
    definition = shipped("target: {script: ./report.sh}\nlimits: {timeout: 10m}\n"
                         "deliver: [{webhook: https://example.com/in, secret: env:KEY}]")
    assert definition.limits.timeout == timedelta(minutes=10)
    assert render(definition) == (
        '---\nname: a\ntimezone: UTC\ntarget: {script: {file: "/desk/report.sh"}}\nlimits: {timeout: 10m}\n'
        'deliver:\n  - webhook: {url: "https://example.com/in", secret: ["env:KEY"]}\n---\n'
    )
    assert shipped(render(definition).strip("-\n")) == definition


def test_a_kind_that_is_not_installed_is_still_written() -> None:
    definition = Definition("a", Target("lamp", {"colour": "red"}), deliver=(Destination("x", "bell", {"loud": 1}),))
    assert 'target: {lamp: {colour: red}}' in render(definition)
    assert "- bell: {loud: 1, name: x}" in render(definition)
