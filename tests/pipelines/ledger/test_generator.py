"""Transfers, without a broker."""

from __future__ import annotations

import json

from kpybroker.pipelines.ledger.generator import transfers


def test_each_transfer_sums_to_zero_and_a_seed_makes_the_same() -> None:
    given = list(transfers(3, 500))
    assert given == list(transfers(3, 500))
    assert given != list(transfers(4, 500))
    for transfer in given:
        assert sum(transfer.amounts.values()) == 0
    entries = [json.loads(value) for _, value in given[0].entries("north")]
    assert {entry["account"]: entry["amount"] for entry in entries} == given[0].amounts
    assert {entry["transfer"] for entry in entries} == {"north-0"}
    assert any("fees" in transfer.amounts for transfer in given)


def test_some_accounts_are_used_much_more_than_others() -> None:
    uses: dict[str, int] = {}
    for transfer in transfers(5, 5000):
        for account in transfer.amounts:
            uses[account] = uses.get(account, 0) + 1
    counts = sorted(uses.values())
    assert counts[-1] > 10 * counts[0]
