"""One entry of `triggers`, `deliver` or `target`: a map with one kind, its main word, and options.

    - file: out.md                                      the main word alone
    - file: out.md                                      options beside it
      on: [failed]
    - file: {path: out.md, on: [failed]}                or all of it inside
    - announce                                          a kind that needs no word
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from nightporter.definitions.grammar import MAIN_WORD, not_yet
from nightporter.definitions.written import Entries, Place, Scalar, Value, bad, unknown, wrong_type
from nightporter.errors import NotYet


@dataclass(frozen=True, slots=True)
class Entry:
    """A kind and everything said about it; the main word stands in `options` under its own name."""

    kind: str
    place: Place
    options: Entries


def entry_of(where: str, value: Value, kinds: Collection[str], later: Mapping[str, str]) -> Entry:
    """Read one entry of the list `where`. Raises NotYet for kinds a later release brings, else BadDefinition."""
    if isinstance(value, Scalar) and value.kind == "text":
        entry = Entry(value.text, value.place, Entries({}, {}, value.place))
        if value.text in later:
            raise _later(value, later)
        if value.text not in kinds:
            raise unknown(value.place, f"kind in `{where}`:", value.text, kinds)
        return entry
    if not isinstance(value, Entries):
        raise wrong_type(where, value, "a map with one kind", next=f"the kinds are: {', '.join(kinds)}")
    named = [key for key in value.values if key in kinds]
    coming = [key for key in value.values if key in later]
    if coming and not named:
        raise not_yet(value, coming[0], later[coming[0]])
    if not named:
        if not value.values:
            raise bad(value.place, f"an entry of `{where}` is empty", next=f"the kinds are: {', '.join(kinds)}")
        first = next(iter(value.values))
        raise unknown(value.keys[first], f"kind in `{where}`:", first, kinds)
    if len(named) > 1:
        second = value.keys[named[1]]
        raise bad(second, f"one entry of `{where}` has two kinds: {named[0]} and {named[1]}",
                  next=f"choose one of them: a `{where}` is one thing" if where == "target"
                  else "give each its own entry, beginning with `- `")
    kind = named[0]
    place, said, beside = value.keys[kind], value.values[kind], value.without(kind)
    if isinstance(said, Entries):
        if beside.values:
            key, stray = next(iter(beside.keys.items()))
            raise bad(stray, f"the options of `{kind}` stand in two places",
                      why=f"some are inside its braces, and `{key}` is beside it", next=f"move `{key}` inside")
        return Entry(kind, place, said)
    if isinstance(said, Scalar) and said.kind == "nothing":
        return Entry(kind, place, beside)
    main = MAIN_WORD.get(kind)
    if main is None:
        raise wrong_type(kind, said, "nothing, or a map of options")
    if main in beside.values:
        raise bad(beside.keys[main], f"`{main}` is said twice", why=f"the value of `{kind}` is its {main}")
    return Entry(kind, place, Entries({main: said, **beside.values}, {main: said.place, **beside.keys}, value.place))


def _later(value: Scalar, later: Mapping[str, str]) -> NotYet:
    return not_yet(Entries({value.text: value}, {value.text: value.place}, value.place), value.text, later[value.text])
