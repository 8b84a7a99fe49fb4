"""A secret is shown by `reveal` only."""

from __future__ import annotations

import json
import pickle

import pytest

from kpybroker.core.security.secret import STARS, Secret

SECRET = Secret("hunter2")


def test_reveal_returns_the_value() -> None:
    assert SECRET.reveal() == "hunter2"


@pytest.mark.parametrize(
    "text", [repr(SECRET), str(SECRET), f"{SECRET}", f"{SECRET!r:>20}", format(SECRET), f"{[SECRET]}"]
)
def test_text_shows_stars(text: str) -> None:
    assert STARS in text
    assert "hunter2" not in text


def test_encoders_refuse_it() -> None:
    with pytest.raises(TypeError):
        json.dumps({"password": SECRET})
    with pytest.raises(TypeError):
        pickle.dumps(SECRET)


def test_equality_is_that_of_the_values() -> None:
    assert Secret("a") == Secret("a")
    assert hash(Secret("a")) == hash(Secret("a"))
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"
