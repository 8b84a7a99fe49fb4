"""An option that takes several names has a type that takes no text."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

from kpybroker import testing
from kpybroker.testing.aio import Aio
from kpybroker.testing.asserting import Comparison
from kpybroker.testing.faults import Selection
from kpybroker.testing.running.options import BrokerKeywords

TAKES_A_TEXT = re.compile(r"\b(Sequence|Iterable|Collection|Container)\[(str|Any)\]")
ONE_OR_SEVERAL = "str | Sequence[str]"


def _annotations() -> Iterator[tuple[str, str]]:
    """Of all parameters of the kit's public methods, and of the keywords that are typed by a mapping."""
    for keywords in (BrokerKeywords, Comparison, Selection):
        for name, annotation in keywords.__annotations__.items():
            yield f"{keywords.__name__}.{name}", annotation.__forward_arg__
    for cls in (Aio, *(getattr(testing, name) for name in testing.__all__)):
        if not inspect.isclass(cls) or cls is Any:
            continue
        for name, function in inspect.getmembers(cls, inspect.isfunction):
            for parameter, annotation in inspect.unwrap(function).__annotations__.items():
                if parameter != "return" and not name.startswith("_"):
                    yield f"{cls.__name__}.{name}({parameter})", str(annotation)


def test_no_list_of_names_may_be_a_text() -> None:
    annotations = dict(_annotations())
    assert annotations["BrokerKeywords.topics"] == "Several[str] | Mapping[str, int]"
    assert annotations["Broker.produce(records)"].startswith("Many[")
    wrong = {
        where: annotation
        for where, annotation in annotations.items()
        if TAKES_A_TEXT.search(annotation) and ONE_OR_SEVERAL not in annotation
    }
    assert wrong == {}


@pytest.mark.parametrize("wrong", ["orders", b"orders", bytearray(b"orders")])
def test_what_a_checker_would_refuse_is_refused_at_run_time_too(wrong: Any) -> None:
    with pytest.raises(testing.UsageError, match="give a list of names"):
        testing.Broker(topics=wrong)
