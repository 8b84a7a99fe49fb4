"""A hundred members of one group at once: no member is forgotten, nothing is given twice, no generation too many."""

from __future__ import annotations

from collections.abc import Callable

import trio

from compat_tests.support.groups.crowd import Crowd, Piece
from compat_tests.support.services import Broker

MEMBERS = 100
StartBroker = Callable[..., Broker]


def test_a_hundred_members_join_and_leave_at_once(own_broker: StartBroker, name: str) -> None:
    """They come within the initial delay: one generation, and each is given one piece, once. Half leave at once: one
    generation more for the rest. When all leave at once, one more, and the group is empty."""
    broker = own_broker(group_initial_rebalance_delay_ms=2000)

    async def scenario() -> None:
        async with trio.open_nursery() as nursery:
            crowd = Crowd(nursery, broker.port, name)
            everybody = await crowd.connect(MEMBERS)
            crowd.start(everybody)
            assert await crowd.settled() == 1
            assert sorted(member.pieces for member in everybody) == [[Piece(1, n)] for n in range(MEMBERS)]
            assert len({member.member_id for member in everybody}) == MEMBERS
            assert await crowd.described() == ("Stable", MEMBERS)

            leavers, stayers = everybody[::2], everybody[1::2]
            await crowd.leave(leavers)
            assert await crowd.described() == ("PreparingRebalance", len(stayers))
            crowd.heartbeat_all()
            assert await crowd.settled() == 2
            assert sorted(member.pieces[1:] for member in stayers) == [[Piece(2, n)] for n in range(len(stayers))]
            assert await crowd.described() == ("Stable", len(stayers))

            await crowd.leave(stayers)
            assert await crowd.described() == ("Empty", 0)
            (late,) = await crowd.connect(1)
            crowd.start([late])
            assert await crowd.settled() == 4, "an empty generation, and the newcomer's"
            nursery.cancel_scope.cancel()

    trio.run(scenario)


def test_a_storm_of_members_settles(broker: Broker, name: str) -> None:
    """Without an initial delay generations overtake each other; in the end all hold pieces of the same one."""

    async def scenario() -> None:
        async with trio.open_nursery() as nursery:
            crowd = Crowd(nursery, broker.port, name, heartbeat_s=0.05)
            crowd.start(await crowd.connect(MEMBERS))
            generation = await crowd.settled()
            assert await crowd.described() == ("Stable", MEMBERS)
            for member in crowd.members:
                held = [piece.generation for piece in member.pieces]
                assert held == sorted(set(held)), "a generation was given twice, or an older one after it"
            newcomers = await crowd.connect(MEMBERS)
            crowd.start(newcomers)
            await crowd.leave(crowd.members[:MEMBERS])
            assert await crowd.settled() > generation
            assert await crowd.described() == ("Stable", MEMBERS)
            assert crowd.members == newcomers
            nursery.cancel_scope.cancel()

    trio.run(scenario)
