"""Scenarios of `/feature`: how a controller sets it up, what UpdateFeatures makes of it, who is kept out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from kpybroker.core.controller import effects, events
from kpybroker.core.controller.features.procedures import Updated
from kpybroker.core.features import Update, UpgradeType, VersionRange
from kpybroker.wire import znodes
from kpybroker.wire.errors import KafkaError
from tests.core.controller.harness import Harness, instantly
from tests.core.controller.text import response_text
from tests.support.scenarios import check_scenarios, scenarios_of

TYPES = {"": UpgradeType.UPGRADE, "safe": UpgradeType.SAFE_DOWNGRADE, "unsafe": UpgradeType.UNSAFE_DOWNGRADE}


class FeaturesHarness(Harness):
    """The harness of the controller, with brokers that support features."""

    def __init__(self) -> None:
        super().__init__()
        self.supported: dict[str, VersionRange] = {}
        self.finalizes_newest = False

    def do_supported(self, *ranges: str) -> None:
        """`group.version=0-1`: what brokers that are added after this support."""
        pairs = (text.split("=") for text in ranges)
        self.supported = {name: VersionRange(*map(int, levels.split("-"))) for name, levels in pairs}

    def do_embedded(self) -> None:
        """Brokers that are added after this have their coordination embedded."""
        self.finalizes_newest = True

    def do_update(self, *wishes: str) -> None:
        """`group.version=1`, `group.version=0:safe`: each has its own result."""
        self._update(wishes)

    def do_update_all(self, *wishes: str) -> None:
        self._update(wishes, all_or_nothing=True)

    def do_validate(self, *wishes: str) -> None:
        self._update(wishes, validate_only=True)

    def do_validate_all(self, *wishes: str) -> None:
        self._update(wishes, all_or_nothing=True, validate_only=True)

    def do_features(self) -> None:
        """Show `/feature`, and its version."""
        node = instantly(self.admin.get(znodes.FEATURE))
        self.output.append(f"{node.data.decode()} version {node.stat.version}")

    def do_write_features(self, data: str) -> None:
        """As an operator does by hand."""
        instantly(self.admin.set(znodes.FEATURE, data.encode()))

    def registration(self, broker_id: int) -> znodes.BrokerRegistration:
        features = {name: (levels.min, levels.max) for name, levels in self.supported.items()}
        return replace(super().registration(broker_id), features=features)

    def settings(self, broker_id: int) -> effects.Settings:
        return super().settings(broker_id)._replace(features=self.supported, finalizes_newest=self.finalizes_newest)

    def _update(self, wishes: Iterable[str], *, all_or_nothing: bool = False, validate_only: bool = False) -> None:
        event = events.UpdateFeatures(tuple(map(_update, wishes)), all_or_nothing, validate_only)
        if not self._held:
            self._run()
        result = self._procedure(self._chosen(), event)
        if isinstance(result, Updated):
            self.output += [
                f"{name}: {'ok' if error is None else response_text(error)}" for name, error in result.results.items()
            ]
            self.output.append("nothing changed" if result.epoch is None else f"epoch {result.epoch}")
        else:
            assert isinstance(result, KafkaError)
            self.output.append(response_text(result))


def _update(wish: str) -> Update:
    text, _, kind = wish.partition(":")
    name, _, level = text.rpartition("=")
    return Update(name, int(level), TYPES.get(kind, UpgradeType.UNKNOWN))


@pytest.mark.parametrize("path", scenarios_of(__file__), ids=lambda path: path.stem)
def test_scenarios_run_as_written(path: Path) -> None:
    check_scenarios(path, FeaturesHarness)
