"""Every change that the console can make, by its key; a new one is added here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kpybroker.console.changes import configs, groups, offsets, placement, schemas, security, topics, transactions
from kpybroker.console.changes.change import Change
from kpybroker.console.changes.connect import configs as connectors
from kpybroker.console.changes.connect import states

CHANGES: Final[Mapping[str, Change]] = {
    one.key: one
    for one in (
        *(topics.CREATE, topics.PARTITIONS, topics.TRIM, topics.DELETE),
        configs.CONFIG,
        *(placement.ELECT, placement.ELECT_UNCLEAN, placement.MOVE, placement.CANCEL, placement.END_THROTTLE),
        *(transactions.ABORT, transactions.ABORT_HANGING),
        *(offsets.OFFSETS, groups.MOVE, groups.FORGET, groups.DELETE),
        *(schemas.REGISTER, schemas.LEVEL, schemas.DELETE),
        *(connectors.CREATE, connectors.CONFIGURE, states.RESTART, states.RESTART_TASK),
        *(states.PAUSE, states.RESUME, states.STOP, states.DELETE, states.RESET_OFFSETS),
        *(security.CREATE_ACL, security.DELETE_ACL),
        *(security.SET_USER, security.DELETE_USER),
        *(security.SET_QUOTA, security.UNSET_QUOTA),
    )
}
