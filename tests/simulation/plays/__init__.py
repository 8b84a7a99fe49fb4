"""Histories that are written out: where a random one would need luck, and where one was found and has to stay good.

Each is an `async def` with a `World`, in `PLAYS` by its name, and a test of its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from tests.simulation.plays.commits import commit_for_others
from tests.simulation.plays.compacted import compact_open_transaction, cut_while_compacting
from tests.simulation.plays.deposed import (
    depose_controller,
    depose_coordinator,
    repeat_former_controller,
    repeat_orders,
)
from tests.simulation.plays.elections import (
    acknowledge_alone,
    fetch_without_responses,
    lead_from_behind,
    lead_without_appending,
    look_at_epochs,
    restart_with_a_tail,
)
from tests.simulation.plays.full_disk import full_disk
from tests.simulation.plays.markers import (
    abort_and_be_cut,
    be_cut_uncleanly,
    commit_below_min_isr,
    decide_and_die,
    repeat_marker,
)
from tests.simulation.plays.members_vanish import members_vanish
from tests.simulation.plays.power_cuts import failed_sync, new_segment
from tests.simulation.plays.resend_after_truncation import resend_after_truncation
from tests.simulation.plays.share_attempts import attempt_again
from tests.simulation.plays.slow_flush import slow_flush
from tests.simulation.plays.static_away import static_away
from tests.simulation.plays.topic_again import make_topic_again
from tests.simulation.world import World


class Play(NamedTuple):
    """`brokers`: how many there are."""

    brokers: int
    run: Callable[[World], Awaitable[None]]


PLAYS = {
    "abort-and-be-cut": Play(3, abort_and_be_cut),
    "acknowledge-alone": Play(3, acknowledge_alone),
    "attempt-again": Play(1, attempt_again),
    "be-cut-uncleanly": Play(3, be_cut_uncleanly),
    "commit-below-min-isr": Play(3, commit_below_min_isr),
    "commit-for-others": Play(1, commit_for_others),
    "compact-open-transaction": Play(1, compact_open_transaction),
    "cut-while-compacting": Play(3, cut_while_compacting),
    "decide-and-die": Play(3, decide_and_die),
    "depose-controller": Play(3, depose_controller),
    "depose-coordinator": Play(3, depose_coordinator),
    "failed-sync": Play(1, failed_sync),
    "fetch-without-responses": Play(4, fetch_without_responses),
    "full-disk": Play(3, full_disk),
    "lead-from-behind": Play(3, lead_from_behind),
    "lead-without-appending": Play(3, lead_without_appending),
    "look-at-epochs": Play(3, look_at_epochs),
    "make-topic-again": Play(1, make_topic_again),
    "members-vanish": Play(1, members_vanish),
    "new-segment": Play(1, new_segment),
    "repeat-former-controller": Play(3, repeat_former_controller),
    "repeat-marker": Play(1, repeat_marker),
    "repeat-orders": Play(3, repeat_orders),
    "resend-after-truncation": Play(3, resend_after_truncation),
    "restart-with-a-tail": Play(3, restart_with_a_tail),
    "slow-flush": Play(3, slow_flush),
    "static-away": Play(1, static_away),
}
