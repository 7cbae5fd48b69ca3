"""Each mistake in a definition is refused at its line and column, with what was meant."""

from __future__ import annotations

import pytest
from sample_definitions import PATH, keys, markdown, place, refusal, yaml

from nightporter.errors import BadDefinition, NotYet


@pytest.mark.parametrize(
    ("written", "where", "says"),
    [
        # A key
        ("nmae: x", (2, 1), "unknown key `nmae`: did you mean `name`?"),
        ("Name: x", (2, 1), "did you mean `name`?"),
        ("time zone: UTC", (2, 1), "did you mean `timezone`?"),
        ("description: x\nzzz: 1", (3, 1), "unknown key `zzz`"),
        ("name: a\nowner: b\nname: c", (4, 1), "the key `name` stands here twice"),
        ("timeout: 5m", (2, 1), "`timeout` stands under `limits`"),
        ("attempts: 5", (2, 1), "`attempts` stands under `retry`"),
        ('cron: "0 9 * * *"', (2, 1), "`cron` stands under `triggers`"),
        ("script: ./x.sh", (2, 1), "`script` stands under `target`"),
        ("limits:\n  per_hour: 5\n  timezone: UTC", (4, 3), "`timezone` does not stand in `limits`"),
        ("1: x", (2, 1), "unknown key `1`"),
        ("? [a]\n: b", (2, 3), "a key is a word"),
        # Names
        ("name: Morning Brief", (2, 7), "'Morning Brief' is not a name"),
        ("name: -x", (2, 7), "is not a name"),
        ("name: " + "a" * 65, (2, 7), "is not a name"),
        ("name: 42", (2, 7), "`name` wants text, and here is the number 42"),
        ("name:", (2, 1), "`name` wants text, and here is empty"),
        ("workspace: My Home", (2, 12), "is not a name"),
        # Types
        ("description: [a, b]", (2, 14), "`description` wants text, and here is a list"),
        ("description: true", (2, 14), "`description` wants text, and here is the flag true"),
        ("description: " + "x" * 10_001, (2, 14), "10000 characters at most"),
        ("idempotent: yes", (2, 13), "`idempotent` wants true or false, and here is the text 'yes'"),
        ("priority: high", (2, 11), "`priority` wants a whole number from 0 to 100, and here is the text 'high'"),
        ("priority: 101", (2, 11), "`priority` wants a whole number from 0 to 100, and here is 101"),
        ("priority: -1", (2, 11), "and here is -1"),
        ("priority: 1.5", (2, 11), "a whole number"),
        ("on_crash: restart", (2, 11), "unknown value of `on_crash`: `restart`"),
        ("on_crash: retyr", (2, 11), "did you mean `retry`?"),
        ("overlap: skipp", (2, 10), "did you mean `skip`?"),
        # Zones and times
        ("timezone: Europe/Lisboa", (2, 11), "no time zone is named 'Europe/Lisboa'"),
        ("timezone: CEST", (2, 11), "no time zone is named"),
        ("expires: soon", (2, 10), "'soon' is not an instant"),
        ("expires: 2027-02-30", (2, 10), "is not a time that exists"),
        ("expires: 20270131", (2, 10), "`expires` wants text"),
        ("cooldown: 5", (2, 11), "`cooldown: 5` does not say how long"),
        ("cooldown: 5 minutes", (2, 11), "'5 minutes' is not a duration"),
        ("cooldown: 366d", (2, 11), "`cooldown` wants a duration from 0s to 365d"),
        ("cooldown: [5m]", (2, 11), "`cooldown` wants a duration such as 5m"),
        # Limits and retry
        ("limits: 5", (2, 9), "`limits` wants a map"),
        ("limits: {per_huor: 5}", (2, 10), "did you mean `per_hour`?"),
        ("limits:\n  per_hour: 0", (3, 13), "from 1 to 1000000"),
        ("limits: {per_hour: 5m}", (2, 20), "a whole number"),
        ("limits: {timeout: 5}", (2, 19), "`timeout: 5` does not say how long"),
        ("limits: {timeout: 0s}", (2, 19), "`timeout` wants a duration from 1ms"),
        ("limits: {output: 999}", (2, 18), "from 1000 bytes"),
        ("limits: {output: 1GB}", (2, 18), "`output` wants a size"),
        ("limits: {output: 200MB}", (2, 18), "to 100MB"),
        ("retry: 3", (2, 8), "`retry` wants a map, or none"),
        ("retry: {atempts: 3}", (2, 9), "did you mean `attempts`?"),
        ("retry: {attempts: 0}", (2, 19), "from 1 to 100"),
        ("retry: {delays: []}", (2, 17), "`delays` wants a list of durations"),
        ("retry: {delays: [30s, 60]}", (2, 23), "`delays: 60` does not say how long"),
        ("retry: {on: [transient, timeout]}", (2, 25), "`timeout` is never tried again"),
        ("retry: {on: transiant}", (2, 13), "did you mean `transient`?"),
        ("retry: {on: []}", (2, 13), "`on` wants a list of"),
        # when
        ("when: 30m", (2, 7), "`when: 30m` is ambiguous"),
        ("when: 1h30m", (2, 7), "it may mean every 1h30m, or once, in 1h30m"),
        ("when: in 20m", (2, 7), "depends on the moment in which it is read"),
        ("when: 30", (2, 7), "a number alone names no unit"),
        ("when: every 15", (2, 7), "a number alone names no unit"),
        ("when: every 0s", (2, 7), "too short"),
        ("when: every 400d", (2, 7), "too long"),
        ("when: 0 25 * * *", (2, 7), "hour"),
        ("when: 0 9 * *", (2, 7), "fields"),
        ('when: "@fortnightly"', (2, 7), "@fortnightly"),
        ("when: at 2026-13-01T09:00", (2, 7), "is not a time that exists"),
        ("when: 2026-11-03", (2, 7), "the time of day is not said"),
        ("when: [every 1h]", (2, 7), "`when` wants the text of one schedule"),
        ("when: {cron: x}", (2, 7), "write more than one under `triggers`"),
        ("when: every 1h\ntriggers:\n  - every: 2h", (4, 5), "cannot stand together"),
        # triggers
        ("triggers: every 1h", (2, 11), "`triggers` wants a list"),
        ("triggers: [every 1h]", (2, 12), "unknown kind in `triggers`: `every 1h`"),
        ("triggers: [[a]]", (2, 12), "`triggers` wants a map with one kind"),
        ("triggers: [{}]", (2, 12), "an entry of `triggers` is empty"),
        ("triggers:\n  - corn: x", (3, 5), "unknown kind in `triggers`: `corn`: did you mean `cron`?"),
        ("triggers:\n  - clock: x", (3, 5), "possible here: cron, every, at, rrule, manual, call"),
        ("triggers:\n  - every: 1h\n    at: 2026-11-03T09:00", (4, 5), "has two kinds: every and at"),
        ("triggers:\n  - every: 1h\n    timezon: UTC", (4, 5), "did you mean `timezone`?"),
        ("triggers:\n  - every: {expression: 1h}\n    name: x", (4, 5), "stand in two places"),
        ("triggers:\n  - every: 1h\n    expression: 2h", (4, 5), "`expression` is said twice"),
        ("triggers:\n  - every: {name: x}", (3, 5), "`every` has no expression"),
        ("triggers:\n  - cron:", (3, 5), "`cron` has no expression"),
        ("triggers:\n  - cron", (3, 5), "`cron` has no expression"),
        ("triggers:\n  - every: 15", (3, 12), "`every: 15` does not say what is meant"),
        ("triggers:\n  - every: [15m]", (3, 12), "`every` wants text"),
        ("triggers:\n  - cron: every 15m", (3, 11), "cron"),
        ("triggers:\n  - at: 30m", (3, 9), "'30m' is not an instant"),
        ("triggers:\n  - cron: 0 9 * * *\n    anchor: 2026-01-01T00:00", (4, 5), "unknown key `anchor` in `cron`"),
        ("triggers:\n  - every: 1h\n    anchor: noon", (4, 13), "'noon' is not an instant"),
        ("triggers:\n  - every: 1h\n    timezone: Mars", (4, 15), "no time zone is named 'Mars'"),
        ("triggers:\n  - every: 1h\n    name: call", (4, 11), "the name `call` is taken"),
        ("triggers:\n  - every: 1h\n    name: No Name", (4, 11), "is not a name"),
        ("triggers:\n  - every: 1h\n    enabled: no", (4, 14), "`enabled` wants true or false"),
        ("triggers:\n  - every: 1h\n    overlap: both", (4, 14), "unknown value of `overlap`"),
        ("triggers:\n  - every: 1h\n    priority: 5", (4, 5), "`priority` does not stand in `every`"),
        ("triggers:\n  - every: 1h\n  - every: 2h", (4, 5), "two triggers have the name `clock`"),
        ("triggers:\n  - every: 1h\n    name: a\n  - every: 2h\n    name: a", (6, 5), "the other one is in line 3"),
        ("triggers: [manual, manual]", (2, 20), "`manual` stands here twice"),
        ("triggers:\n  - call: {name: x}", (3, 12), "`name`"),
        ("triggers:\n  - manual: now", (3, 13), "`manual` wants nothing, or a map of options"),
        # target
        ("target: [echo]", (2, 9), "`target` wants a map with one kind"),
        ("target: {ehco: x}", (2, 10), "did you mean `echo`?"),
        ("target: {script: a, http: b}", (2, 21), "has two kinds: script and http"),
        ("target: {function: f}", (2, 10), "a `function` is given in code"),
        ("target: {echo: x}", (4, 1), "the text below the keys is not used"),
        ("target: {script: x}", (4, 1), "the text below the keys is not used by the target `script`"),
        ("target: {script: {comand: x}}", (2, 19), "did you mean `command`?"),
        ("target: {noop: {speed: 1}}", (2, 17), "unknown key `speed` in `noop`"),
        # deliver
        ("deliver: 5", (2, 10), "`deliver` wants a map with one kind"),
        ("deliver: []", (2, 10), "at least one destination"),
        ("deliver: anounce", (2, 10), "did you mean `announce`?"),
        ("deliver: [{fiel: x}]", (2, 12), "did you mean `file`?"),
        ("deliver: [{file: x, on: [reports]}]", (2, 26), "did you mean `report`?"),
        ("deliver: [{file: x, on: noop}]", (2, 25), "unknown value of `on`"),
        ("deliver: [{file: x, best_effort: maybe}]", (2, 34), "`best_effort` wants true or false"),
        ("deliver: [{file: x, name: A B}]", (2, 27), "is not a name"),
        ("deliver: [{file: x, sekret: y}]", (2, 21), "unknown key `sekret` in `file`"),
        ("deliver: [{webhook: x, secrt: y}]", (2, 24), "did you mean `secret`?"),
        ("deliver:\n  - file: a\n  - file: b", (4, 5), "two destinations have the name `file`"),
        ("deliver:\n  - file: a\n  - webhook: b\n    name: file", (5, 5), "the other one is in line 3"),
        ("deliver: [announce, none]", (2, 21), "`none` stands beside other destinations"),
        ("deliver: [{announce: loudly}]", (2, 22), "`announce` wants nothing, or a map of options"),
        ("deliver: [{file: wrong, path: x}]", (2, 25), "`path` is said twice"),
        ("triggers: [{manual: {overlap: queue}}]", (2, 22), "passes overlap, whatever is going"),
        ("target: {script: a, python: b:c}", (2, 21), "choose one of them"),
        ("deliver: [{lamp: {colour: wrong}}]", (2, 19), "`colour` cannot be that"),
        ("deliver: [{lamp: , colour: .inf}]", (2, 28), "is no number that can be kept"),
        ("deliver: [{lamp: , colour: " + "9" * 5000 + "}]", (2, 28), "is no number that can be kept"),
        ("deliver: [{lamp: , colour: 0x" + "f" * 5000 + "}]", (2, 28), "is too large"),
        ("deliver: [{lamp: , colour: 9223372036854775808}]", (2, 28), "the number 9223372036854775808 is too large"),
        ("deliver: [{lamp: , colour: -9223372036854775809}]", (2, 28), "is too large"),
    ],
)
def test_a_mistake_is_refused_where_it_stands(written: str, where: tuple[int, int], says: str) -> None:
    error = refusal(written)
    assert not isinstance(error, NotYet)
    assert says in str(error)
    assert place(error) == where


@pytest.mark.parametrize(
    ("text", "where", "says"),
    [
        ("", (1, 1), "does not begin with front matter"),
        ("Summarise.\n", (1, 1), "does not begin with front matter"),
        ("---\nname: x\nSummarise.", (3, 1), "the front matter has no end"),
        ("---\nname: x\n---\n  \n", (1, 1), "nothing is said to run"),
        ("---\ntarget: {lamp: {colour: wrong}}\n---\n", (2, 17), "`colour` cannot be that"),
        ("---\ntarget: {script: ./a.sh | ./b.sh}\n---\n", (2, 18), "the shell will not find"),
        ("---\n- a\n---\nx", (2, 1), "a definition is a map of keys"),
        ("---\njust words\n---\nx", (2, 1), "a definition is a map of keys"),
        ("---\nwhen: * * * * *\n---\nx", (2, 8), "put the value in quotes: a `*`"),
        ("---\nwhen: */5 * * * *\n---\nx", (2, 7), "put the value in quotes: a `*`"),
        ("---\nwhen: @daily\n---\nx", (2, 7), "put the value in quotes: YAML does not let one begin with `@`"),
        ("---\nlimits:\n\tper_hour: 5\n---\nx", (3, 1), "indent with spaces"),
        ("---\ndescription: Note: this\n---\nx", (2, 18), "if it has a `: ` in it"),
        ("---\ndeliver: [{file: {{date}}.md}]\n---\nx", (2, 26), "put the value with `{{` in quotes"),
        ("---\nname: [x\n---\nx", (3, 1), "brackets"),
        ('---\nname: "x\n---\nx', (3, 1), "close the quotes"),
        ("---\nname: x\n  owner: y\n---\nx", (3, 8), "indented"),
        ("---\nname: *x\n---\nx", (2, 7), "this is not YAML"),
        ("---\nname: &x y\n---\nx", (2, 7), "anchors and aliases are not read"),
        ("---\na: &a [*a]\n---\nx", (2, 4), "anchors and aliases are not read"),
        ("---\nname: !!python/object:os.system x\n---\nx", (2, 7), "the tag `"),
        ("---\nname: !mine {a: b}\n---\nx", (2, 7), "the tag `!mine`"),
        ("---\nname: \x01\n---\nx", (2, 7), "'\\x01' cannot stand in YAML"),
        ("---\nname: x\n---\nab\0c", (4, 3), "'\\x00' cannot be kept"),
        ('---\ndescription: "\\0"\n---\nx', (2, 14), "'\\x00' cannot be kept"),
        ('---\ndescription: "\\ud83d"\n---\nx', (2, 14), "cannot be kept"),
        ("---\na: " + "[" * 2000 + "\n---\nx", (2, 24), "nested deeper than 20 levels"),
        ("---\na: " + "[" * 30 + "]" * 30 + "\n---\nx", (2, 24), "nested deeper than 20 levels"),
        ("---\ndescription: '" + "x" * 140_000 + "'\n---\nx", (1, 1), "131072 are read"),
    ],
)
def test_a_text_that_cannot_be_taken_apart_is_refused_where_it_goes_wrong(
    text: str, where: tuple[int, int], says: str
) -> None:
    with pytest.raises(BadDefinition) as caught:
        markdown(text)
    assert says in str(caught.value)
    assert place(caught.value) == where
    assert str(caught.value).startswith(f"{PATH}:{where[0]}:{where[1]}: ")


@pytest.mark.parametrize(
    ("text", "where", "says"),
    [
        ("", (1, 1), "nothing is said to run"),
        ("# only a comment\n", (1, 1), "nothing is said to run"),
        ("target: noop\n---\ntarget: echo\n", (2, 1), "this is not YAML"),
        ("---\ntarget: noop\nnam: x\n", (3, 1), "did you mean `name`?"),
        ("%YAML 1.1\n---\ntarget: noop\nidempotent: yes\n", (4, 13), "wants true or false"),
    ],
)
def test_a_yaml_file_has_its_places_counted_from_its_own_first_line(
    text: str, where: tuple[int, int], says: str
) -> None:
    with pytest.raises(BadDefinition) as caught:
        yaml(text)
    assert says in str(caught.value)
    assert place(caught.value) == where


@pytest.mark.parametrize("path", ["/desk/Morning Brief.md", "/desk/été.md", "", "/desk/_x.md"])
def test_a_file_whose_name_cannot_be_a_name_must_say_one(path: str) -> None:
    with pytest.raises(BadDefinition, match="write `name: "):
        markdown("---\n---\nx", path=path)
    assert markdown("---\nname: x\n---\nx", path=path).name == "x"


def test_the_name_that_is_offered_can_be_taken() -> None:
    with pytest.raises(BadDefinition, match="write `name: morning-brief`"):
        markdown("---\n---\nx", path="/desk/Morning  Brief!.md")
    with pytest.raises(BadDefinition, match="write morning-brief"):
        keys("name: Morning Brief")


def test_an_ambiguous_duration_offers_both_meanings() -> None:
    error = refusal("when: 30m")
    assert error.next == "write `when: every 30m`, or `when: at 2026-09-21T15:44`"
    assert keys("when: at 2026-09-21T15:44").triggers
    assert keys("when: every 30m").triggers


def test_every_refusal_says_what_to_do_or_why() -> None:
    for written in ("nmae: x", "limits: {timeout: 5}", "when: 30m", "name: X", "timezone: CEST", "retry: 3"):
        error = refusal(written)
        assert error.what
        assert error.next
        assert error.as_json()["line"] == 2
