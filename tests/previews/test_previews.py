"""What a preview says is what fires, through the store, around changes of the clock, whenever the desk begins anew."""

from __future__ import annotations

import pytest

from previews.life import lived


@pytest.mark.parametrize("seed", range(5))
def test_what_fires_is_what_a_preview_said(seed: int, store_url: str) -> None:
    life = lived(seed, store_url)
    try:
        assert life.found() == []
        assert sum(len(said.runs) for said in life.said.values()) > 20
        assert life.restarts
    finally:
        life.night.store.close()
