"""file: where a result is written, with what in it, and what is refused."""

from __future__ import annotations

import errno
import hashlib
import json
from pathlib import Path

import pytest
from parcels import parcel

from nightporter.destinations import file as file_module
from nightporter.destinations.file import FileDestination, check
from nightporter.errors import BadInput
from nightporter.words import Reason, Receipt


async def test_the_report_is_written_and_the_evidence_names_it(tmp_path: Path) -> None:
    sent = await FileDestination(tmp_path).send(parcel(check("briefs/{{date}}.md")))
    path = tmp_path / "briefs" / "2026-03-27.md"
    assert path.read_text() == "All quiet.\n"
    assert sent.receipt == Receipt.DELIVERED
    assert sent.evidence == f"{path} sha256:{hashlib.sha256(b'All quiet.' + bytes([10])).hexdigest()}"


async def test_every_field_is_filled_from_the_end_of_the_run(tmp_path: Path) -> None:
    await FileDestination(tmp_path).send(parcel(check("{{name}}/{{ date }}_{{time}}_{{run}}.txt")))
    assert (tmp_path / "morning-brief" / "2026-03-27_090000_run_0123.txt").exists()


async def test_dates_and_times_are_those_of_the_automations_zone(tmp_path: Path) -> None:
    destination = FileDestination(tmp_path)
    await destination.send(parcel(check("{{date}}T{{time}}.md"), timezone="Pacific/Auckland"))
    await destination.send(parcel(check("gone-{{time}}.md"), timezone="Mars/Olympus"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2026-03-27T220000.md", "gone-090000.md"]


async def test_without_a_path_each_run_has_a_file_of_its_own(tmp_path: Path) -> None:
    await FileDestination(tmp_path).send(parcel(check(None)))
    assert (tmp_path / "morning-brief" / "2026-03-27-090000-run_0123.md").exists()


async def test_a_second_try_writes_the_same_bytes_to_the_same_place(tmp_path: Path) -> None:
    destination = FileDestination(tmp_path)
    assert destination.repeatable
    first = await destination.send(parcel(check("a.md")))
    assert await destination.send(parcel(check("a.md"), attempt=2)) == first
    assert list(tmp_path.iterdir()) == [tmp_path / "a.md"]


async def test_json_has_all_that_is_known(tmp_path: Path) -> None:
    sent = parcel(check({"path": "a.json", "format": "json"}), text="né")
    await FileDestination(tmp_path).send(sent)
    assert json.loads((tmp_path / "a.json").read_text()) == sent.body


async def test_a_failure_without_a_report_says_its_error(tmp_path: Path) -> None:
    await FileDestination(tmp_path).send(parcel(check("a.md"), text="", error="it ended with exit code 3"))
    assert (tmp_path / "a.md").read_text() == "it ended with exit code 3\n"


@pytest.mark.parametrize("name", ["../../etc", "a/b", "..", "a\0b", "", "x" * 500])
async def test_a_name_cannot_lead_out_of_its_place(tmp_path: Path, name: str) -> None:
    outputs = tmp_path / "outputs"
    sent = await FileDestination(outputs).send(parcel(check("{{name}}.md"), name=name))
    assert sent.receipt == Receipt.DELIVERED
    (written,) = tmp_path.rglob("*.md")
    assert written.parent == outputs


@pytest.mark.parametrize("path", ["/etc/nightporter-test.md", "link/x.md"])
async def test_a_path_out_of_the_outputs_folder_is_refused(tmp_path: Path, path: str) -> None:
    outputs = tmp_path / "outputs"
    outputs.mkdir()
    (outputs / "link").symlink_to(tmp_path)
    sent = await FileDestination(outputs).send(parcel({"path": path, "format": "text"}))
    assert (sent.receipt, sent.reason) == (Receipt.PERMANENT, Reason.PERMISSION_DENIED)
    assert "does not stay below" in sent.error
    assert not (tmp_path / "x.md").exists()


async def test_a_folder_in_the_way_is_permanent(tmp_path: Path) -> None:
    (tmp_path / "a.md").mkdir()
    sent = await FileDestination(tmp_path).send(parcel(check("a.md")))
    assert (sent.receipt, sent.reason) == (Receipt.PERMANENT, Reason.CONFIGURATION)
    assert sent.error
    (tmp_path / "b").touch()
    assert (await FileDestination(tmp_path).send(parcel(check("b/c.md")))).receipt == Receipt.PERMANENT
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.md", "b"]


async def test_a_full_disk_is_transient(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, content: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(file_module, "write_durably", full)
    sent = await FileDestination(tmp_path).send(parcel(check("a.md")))
    assert (sent.receipt, sent.error) == (Receipt.TRANSIENT, f"{tmp_path}/a.md: No space left on device")


@pytest.mark.parametrize(("config", "said"), [
    ({"path": "../x"}, "`file.path` cannot be '../x'"), ({"path": "a/"}, "`file.path` cannot be 'a/'"),
    ({"path": " "}, "`file.path` cannot be ' '"), ({"path": 7}, "`file.path` cannot be a number"),
    ({"path": "{{day}}.md"}, "unknown field {{day}}"),
    ({"path": "/etc/x.md"}, "write it from that folder on: etc/x.md"), ({"path": "~/x.md"}, "it is no whole path"),
    ({"path": "a", "format": "xml"}, "`file.format` cannot be 'xml'"),
    ({"pth": "a"}, "did you mean `path`?"),
])
def test_a_config_that_cannot_be_used_is_refused_with_its_key(config: object, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        check(config)
    assert said in str(caught.value)


def test_a_config_is_completed_and_completing_it_again_changes_nothing() -> None:
    assert check("a.md") == check(check("a.md")) == {"path": "a.md", "format": "text"}
