"""Legible: text as every database and every encoding takes it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightporter.rules.legible import legible, legible_value, plain


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("", ""), ("as it is", "as it is"), ("naïve 🌙", "naïve 🌙"), ("a\0b", "a\ufffdb"), ("\ud83d", "\ufffd"),
        ("\ud83c\udf19", "🌙"), ("ä\udc80\0", "ä\ufffd\ufffd"), ("\x01\x7f", "\x01\x7f"),
    ],
    ids=ascii,
)
def test_what_nobody_can_keep_is_replaced_and_the_rest_left(text: str, kept: str) -> None:
    assert legible(text) == kept


@given(st.text(st.characters(exclude_categories=[])))
def test_every_text_can_be_encoded_afterwards_and_is_then_left_alone(text: str) -> None:
    kept = legible(text)
    assert "\0" not in kept
    assert kept.encode().decode() == kept
    assert legible(kept) == kept


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_what_can_be_kept_is_kept_as_it_is(text: str) -> None:
    assert legible(text) == text


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=[])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=[])), inner),
)


@given(VALUES)
def test_a_value_keeps_its_shape_and_all_its_texts_can_be_encoded(value: Any) -> None:
    kept = legible_value(value)
    assert type(kept) is type(value)
    json.dumps(kept, ensure_ascii=False).encode()
    assert legible_value(kept) == kept


def test_what_is_plain_is_one_line_of_ascii_that_says_what_was_there() -> None:
    assert plain(ValueError("it\nwas\0 \ud800  caf\xe9")) == "it was\\x00 \\ud800 caf\\xe9"
