"""What is said where the packages of the extra are missing."""

from __future__ import annotations

import pytest

from kpybroker.broker.client_metrics import packages


def test_with_the_packages_there_is_nothing_to_do() -> None:
    assert packages.available() is None


def test_without_them_the_text_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "PACKAGES", ("opentelemetry.proto", "no_such_package.of_any"))
    assert packages.available.__wrapped__() == (
        "client metrics need packages that are not installed: no_such_package.of_any; pip install 'kpybroker[otlp]'"
    )
