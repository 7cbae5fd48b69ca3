"""Each variable of a crontab: with it and without it, and only below where it stands."""

from __future__ import annotations

import pytest
from machines import job, planned, tab

from nightporter.exchange.crontab import variable_of

LINE = "0 3 * * * /bin/x\n"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("A=1", ("A", "1")),
        ("  A = 1 2  ", ("A", "1 2")),
        ('A=" 1 "', ("A", " 1 ")),
        ("A=''", ("A", "")),
        ("A=", ("A", "")),
        ('"A B"=c', ("A B", "c")),
        ("'A' = \"b c\" ", ("A", "b c")),
        ("A=b=c", ("A", "b=c")),
        ("A=$HOME/bin", ("A", "$HOME/bin")),
        ('A="b" c', None),
        ("0 3 * * * A=1 /bin/x", None),
        ("@daily A=1 x", None),
        ("=1", None),
    ],
)
def test_a_variable_is_read_as_cron_reads_it(line: str, found: tuple[str, str] | None) -> None:
    assert variable_of(line) == found


def test_a_variable_acts_on_the_lines_below_it() -> None:
    first, second, third = tab(f"{LINE}A=1\n{LINE}A=2\n{LINE}").entries
    assert [e.environment.get("A") for e in (first, second, third)] == [None, "1", "2"]


def test_path_comes_over_and_without_it_crons_own_does() -> None:
    bare, said = job(LINE), job("PATH=/opt/bin\n" + LINE)
    assert (bare.environment["PATH"], bare.carried) == ("/usr/bin:/bin", ("cron's own PATH",))
    assert (said.environment["PATH"], said.carried) == ("/opt/bin", ("PATH",))


def test_shell_is_what_the_command_is_given_to() -> None:
    bare, said, strange = (job(f"{first}0 3 * * * x y\n") for first in ("", "SHELL=/bin/bash\n", "SHELL=bash\n"))
    assert (bare.command, said.command) == ("x y", ("/bin/bash", "-c", "x y"))
    assert said.environment["SHELL"] == "/bin/bash"
    assert strange.refused == "SHELL=bash is no absolute path"


def test_home_is_where_it_works() -> None:
    bare, said = job(LINE), job("HOME=/srv\n" + LINE)
    assert [(e.cwd, e.environment["HOME"]) for e in (bare, said)] == [("/home/ana", "/home/ana"), ("/srv", "/srv")]


def test_logname_is_the_users_whatever_is_said() -> None:
    assert job("LOGNAME=bob\n" + LINE).environment["LOGNAME"] == "ana"


def test_mail_to_nobody_is_no_delivery_and_mail_to_somebody_the_inbox() -> None:
    none, nobody, somebody = (planned(tab(first + LINE)).items[0] for first in ("", 'MAILTO=""\n', "MAILTO=a@x.org\n"))
    assert all(item.definition is not None for item in (none, nobody, somebody))
    assert [[d.kind for d in item.definition.deliver] for item in (none, nobody, somebody) if item.definition] == [
        ["announce"], ["none"], ["announce"]]
    assert [[each.what for each in item.entry.leftovers] for item in (none, nobody, somebody)] == [
        [], [], ["MAILTO=a@x.org"]]
    assert "MAILTO" not in somebody.entry.environment


@pytest.mark.parametrize("name", ["MAILFROM", "CONTENT_TYPE", "CONTENT_TRANSFER_ENCODING"])
def test_what_is_about_the_mail_is_named(name: str) -> None:
    said, to_nobody = job(f"{name}=x\n{LINE}"), job(f'MAILTO=""\n{name}=x\n{LINE}')
    assert ([each.what for each in said.leftovers], to_nobody.leftovers) == ([f"{name}=x"], ())


def test_cron_tz_is_the_zone_of_the_lines_below_it() -> None:
    here, there = tab(f"{LINE}CRON_TZ=Asia/Tokyo\n{LINE}").entries
    assert [e.timings[0].timezone for e in (here, there)] == ["Europe/Berlin", "Asia/Tokyo"]
    assert "Debian's cron keeps to the machine's zone" in there.leftovers[0].why


def test_a_zone_that_there_is_not_costs_the_lines_below_it() -> None:
    good, bad, mended = tab(f"{LINE}CRON_TZ=Mars/Base\n{LINE}CRON_TZ=UTC\n{LINE}").entries
    assert (good.refused, "Mars/Base" in bad.refused, mended.refused) == ("", True, "")


def test_tz_is_the_commands_and_not_the_schedules() -> None:
    entry = job("TZ=Asia/Tokyo\n" + LINE)
    assert (entry.environment["TZ"], entry.timings[0].timezone) == ("Asia/Tokyo", "Europe/Berlin")


def test_a_delay_by_lot_is_a_stagger_and_what_it_lacks_is_named() -> None:
    without, nothing, some = (job(first + LINE) for first in ("", "RANDOM_DELAY=0\n", "RANDOM_DELAY=30\n"))
    assert (without.leftovers, nothing.leftovers) == ((), ())
    assert [each.what for each in some.leftovers] == ["RANDOM_DELAY=30", "another reading of RANDOM_DELAY"]
    assert (some.timings[0].options, job("RANDOM_DELAY=3\n" + LINE).timings[0].options) == (
        {"stagger": "5m"}, {"stagger": "3m"})
    assert [each.what for each in job("RANDOM_DELAY=some\n" + LINE).leftovers] == ["RANDOM_DELAY=some"]
    assert "RANDOM_DELAY" not in some.environment


def test_a_variable_with_a_name_that_no_command_can_have_is_named() -> None:
    entry = job('"A B"=1\n' + LINE)
    assert ([each.what for each in entry.leftovers], "A B" in entry.environment) == (["the variable A B"], False)
