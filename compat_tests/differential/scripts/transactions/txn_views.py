"""DescribeTransactions and ListTransactions."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.script import ask, script
from compat_tests.differential.steps import create
from compat_tests.differential.transactional import DESCRIBE, LIST, STRANGER, T, added, begin, describe, done, end, init

FILTERS: tuple[dict[str, Any], ...] = (
    {"state_filters": [], "producer_id_filters": []},
    {"state_filters": ["Ongoing"], "producer_id_filters": []},
    {"state_filters": ["Ongoing", "Empty", "Empty"], "producer_id_filters": []},
    {"state_filters": ["CompleteCommit", "CompleteAbort", "Dead"], "producer_id_filters": []},
    {"state_filters": ["PrepareEpochFence", "PrepareAbort", "PrepareCommit"], "producer_id_filters": []},
    {"state_filters": ["ongoing"], "producer_id_filters": []},
    {"state_filters": ["nonsense", "Ongoing"], "producer_id_filters": []},
    {"state_filters": [], "producer_id_filters": ["{kept}", "{open}"]},
    {"state_filters": ["Ongoing"], "producer_id_filters": ["{kept}", "{open}"]},
    {"state_filters": [], "producer_id_filters": [STRANGER]},
    {"state_filters": [], "producer_id_filters": [], "duration_filter": 3_600_000},
    {"state_filters": [], "producer_id_filters": [], "duration_filter": -1},
    {"state_filters": [], "producer_id_filters": [], "duration_filter": -99},
    {"state_filters": ["Ongoing"], "producer_id_filters": [], "duration_filter": 3_600_000},
)
"""What ListTransactions is asked for: states, producers and how long they have been open (ms)."""

SCRIPTS = [
    script(
        "txn-describe",
        DESCRIBE,
        "every state from the outside; unknown and empty ids",
        create("{t}", partitions=3),
        create("{t}-2", partitions=2),
        describe(),
        describe("{t}-none", "", "{t}-none"),
        begin(),
        describe(T),
        added({"{t}": [2, 0], "{t}-2": [1]}),
        describe(T, "{t}-none", T),
        end(True, v=3),
        done("CompleteCommit"),
        begin(),
        describe(T),
        added({"{t}": [0]}, epoch=1),
        describe(T),
        init(v=4),
        done("CompleteAbort"),
        describe(T),
    ),
    script(
        "txn-list",
        LIST,
        "filters by state, producer and age; words that are no states",
        create("{t}"),
        begin("{t}-empty", "empty"),
        begin("{t}-open", "open"),
        begin("{t}-kept", "kept"),
        begin("{t}-dropped", "dropped"),
        added({"{t}": [0]}, name="{t}-open", pid="{open}"),
        added({"{t}": [0]}, name="{t}-kept", pid="{kept}"),
        added({"{t}": [0]}, name="{t}-dropped", pid="{dropped}"),
        end(True, name="{t}-kept", pid="{kept}", v=3),
        end(False, name="{t}-dropped", pid="{dropped}", v=3),
        done("CompleteCommit", name="{t}-kept"),
        done("CompleteAbort", name="{t}-dropped"),
        *(ask(LIST, only={"transaction_states": "transactional_id={t}-"}, **fields) for fields in FILTERS),
    ),
]
