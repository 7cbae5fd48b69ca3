"""The text of a definition file taken apart: YAML with the place of every key and value, and the body below it.

Only the plain part of YAML is read: maps with text keys, lists, words, numbers, flags. Anchors, aliases and tags
are refused, because no place could be named for what they bring in.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from nightporter.definitions.written import Entries, Items, Place, Scalar, Value, bad
from nightporter.errors import BadDefinition

if TYPE_CHECKING:
    from ruamel.yaml.error import MarkedYAMLError
    from ruamel.yaml.nodes import Node
    from ruamel.yaml.reader import ReaderError

Format = Literal["markdown", "yaml"]

LONGEST_YAML = 128 * 1024
"""Characters. Reading dense YAML takes about a second per 100 KB; long texts belong in the body."""
DEEPEST = 20

_FENCE = "---"
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Page:
    """One file taken apart."""

    root: Entries
    body: str
    """The text below the front matter without blank lines around it; always empty for YAML."""
    body_place: Place


def take_apart(text: str, format: Format) -> Page:
    """Read a file's text. Raises BadDefinition with line and column."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    _refuse_unstorable(text)
    if format == "yaml":
        return Page(_root(text), "", Place(1, 1))
    lines = text.split("\n")
    if lines[0].rstrip() != _FENCE:
        raise bad(
            Place(1, 1), "the file does not begin with front matter",
            why="a Markdown definition begins with a line `---`, then its keys, then another line `---`",
            next="write `---` as the first line",
        )
    end = next((number for number, line in enumerate(lines) if number and line.rstrip() == _FENCE), None)
    if end is None:
        raise bad(
            Place(len(lines), 1), "the front matter has no end",
            why="after the first line `---` no second one was found",
            next="write `---` on a line of its own below the keys",
        )
    # The opening fence stays: it is YAML's own document start, and lines keep their numbers.
    root = _root("\n".join(lines[:end]) + "\n")
    below = lines[end + 1 :]
    blank = next((i for i, line in enumerate(below) if line.strip()), 0)
    return Page(root, "\n".join(below).strip(), Place(end + 2 + blank, 1))


def _root(text: str) -> Entries:
    if len(text) > LONGEST_YAML:
        raise bad(
            Place(1, 1), f"the keys take {len(text)} characters and {LONGEST_YAML} are read",
            next="put long text below the front matter of a Markdown file",
        )
    node = _compose(text)
    value = Scalar("", "nothing", Place(1, 1)) if node is None else _value(node, 0)
    if isinstance(value, Scalar) and value.kind == "nothing":
        return Entries({}, {}, value.place)
    if not isinstance(value, Entries):
        raise bad(value.place, "a definition is a map of keys", next="write `key: value`, one to a line")
    return value


def _compose(text: str) -> Node | None:
    from ruamel.yaml import YAML
    from ruamel.yaml.composer import Composer
    from ruamel.yaml.error import MarkedYAMLError, YAMLError
    from ruamel.yaml.reader import ReaderError

    class Shallow(Composer):
        """Stops where it gets too deep. What is below costs the parser the square of its depth."""

        level = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            self.level += 1
            if self.level > DEEPEST + 1:
                mark = self.parser.peek_event().start_mark
                raise _too_deep(Place(mark.line + 1, mark.column + 1))
            try:
                return super().compose_node(parent, index)
            finally:
                self.level -= 1

    yaml = YAML(typ="safe", pure=True)
    yaml.Composer = Shallow
    try:
        node: Node | None = yaml.compose(text)
    except MarkedYAMLError as error:
        raise _unparsable(text, error) from None
    except ReaderError as error:
        place = place_at(text, error.position)
        raise bad(place, f"the character {_character(error)!r} cannot stand in YAML", next="remove it") from None
    except RecursionError:
        raise _too_deep(Place(1, 1)) from None
    except (YAMLError, ValueError, KeyError, IndexError, AttributeError) as error:
        # The parser's own slips on hostile text must look like any other unreadable file.
        raise bad(Place(1, 1), "this is not YAML", why=str(error)) from None
    return node


def _too_deep(place: Place) -> BadDefinition:
    return bad(place, f"the YAML is nested deeper than {DEEPEST} levels", next="write it flatter")


def _character(error: ReaderError) -> str:
    return chr(error.character) if isinstance(error.character, int) else str(error.character)


def place_at(text: str, position: int) -> Place:
    """The place of a character by its index."""
    before = text[:position]
    return Place(before.count("\n") + 1, position - (before.rfind("\n") + 1) + 1)


def _unparsable(text: str, error: MarkedYAMLError) -> BadDefinition:
    mark = error.problem_mark or error.context_mark
    place = Place(mark.line + 1, mark.column + 1) if mark else Place(1, 1)
    why = ": ".join(part for part in (error.context, error.problem) if part)
    return bad(place, "this is not YAML", why=why, next=_hint(text, place, why))


def _hint(text: str, place: Place, why: str) -> str:
    lines = text.split("\n")
    line = lines[place.line - 1] if place.line <= len(lines) else ""
    here = line[place.column - 1 :]
    if "alias" in why:
        return "put the value in quotes: a `*` at its start means something else in YAML"
    if here.startswith(("@", "`", "%")):
        return f"put the value in quotes: YAML does not let one begin with `{here[0]}`"
    if here.startswith("\t"):
        return "indent with spaces, not with tabs"
    if "{{" in line:
        return "put the value with `{{` in quotes"
    if "mapping values are not allowed" in why:
        return "put the value in quotes if it has a `: ` in it, or check how the line is indented"
    if "quoted scalar" in why:
        return "close the quotes"
    return "check the indentation, the quotes and the brackets just above"


def _value(node: Node, depth: int) -> Value:
    from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode

    place = Place(node.start_mark.line + 1, node.start_mark.column + 1)
    if depth > DEEPEST:
        raise _too_deep(place)
    if node.anchor:
        raise bad(place, "anchors and aliases are not read in a definition", next="write the value where it is wanted")
    kind = _KINDS.get(str(node.tag))
    if kind is None:
        raise bad(place, f"the tag `{node.tag}` is not read in a definition", next="remove it")
    if isinstance(node, ScalarNode):
        if kind == "map" or kind == "list":
            raise bad(place, f"the tag `{node.tag}` is not read in a definition", next="remove it")
        _refuse_unstorable(node.value, place)
        if kind == "flag" and node.value.lower() not in ("true", "false"):
            kind = "text"  # `yes` and `off` are words, whatever version of YAML the file declares.
        return Scalar(node.value, kind, place)
    if isinstance(node, SequenceNode):
        return Items(tuple(_value(item, depth + 1) for item in node.value), place)
    assert isinstance(node, MappingNode)
    values: dict[str, Value] = {}
    keys: dict[str, Place] = {}
    for key_node, value_node in node.value:
        key = _value(key_node, depth + 1)
        if not isinstance(key, Scalar) or key.kind == "nothing":
            raise bad(key.place, "a key is a word", next="put it in quotes if it begins with `{` or `[`")
        if key.text in values:
            first = keys[key.text]
            raise bad(key.place, f"the key `{key.text}` stands here twice",
                      why=f"the first one is in line {first.line}", next="keep one of the two")
        keys[key.text] = key.place
        value = _value(value_node, depth + 1)
        if isinstance(value, Scalar) and value.kind == "nothing" and not value.text:
            value = replace(value, place=key.place)  # What is not there would stand where the next key is.
        values[key.text] = value
    return Entries(values, keys, place)


_KINDS: dict[str, Literal["text", "number", "flag", "nothing", "map", "list"]] = {
    "tag:yaml.org,2002:str": "text",
    # An unquoted date is a word here: what it means is decided by its key, in the definition's own zone.
    "tag:yaml.org,2002:timestamp": "text",
    "tag:yaml.org,2002:int": "number",
    "tag:yaml.org,2002:float": "number",
    "tag:yaml.org,2002:bool": "flag",
    "tag:yaml.org,2002:null": "nothing",
    "tag:yaml.org,2002:map": "map",
    "tag:yaml.org,2002:seq": "list",
}


def _refuse_unstorable(text: str, place: Place | None = None) -> None:
    """No database keeps these, and no file holds the second sort: better said here than at the first run."""
    found = _UNSTORABLE.search(text)
    if found:
        raise bad(place or place_at(text, found.start()), f"the character {found.group()!r} cannot be kept",
                  next="remove it")
