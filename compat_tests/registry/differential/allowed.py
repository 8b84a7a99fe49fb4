"""The ledger: in what responses may differ from those of Confluent's registry, and why. Nothing else may.

An entry that allows nothing any more fails the test, so that the list stays true.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from compat_tests.registry.differential.play import Response
from compat_tests.registry.differential.step import Step

ANYTHING: Final = frozenset({"*"})
MESSAGE: Final = frozenset({"message"})


class Allowed(NamedTuple):
    """What may differ where. Patterns are searched for: in a conversation's name, in a request as it is shown.

    `codes` are error codes of their response, `statuses` its statuses; empty ones say nothing. An entry with
    `is_same_code` holds only where our response has their error code.
    """

    reason: str
    members: frozenset[str]
    conversation: str = ""
    request: str = ""
    codes: tuple[int, ...] = ()
    statuses: tuple[int, ...] = ()
    is_same_code: bool = False

    def covers(self, conversation: str, step: Step, theirs: Response, ours: Response) -> bool:
        """Whether the entry speaks of this step."""
        code, own = _code(theirs), _code(ours)
        return (
            re.search(self.conversation, conversation) is not None
            and re.search(self.request, step.shown) is not None
            and (not self.codes or code in self.codes)
            and (not self.statuses or theirs.status in self.statuses)
            and (not self.is_same_code or code == own)
        )

    def of(self, members: frozenset[str]) -> frozenset[str]:
        """Which of the differing members it allows."""
        return members if self.members == ANYTHING else members & self.members


def _code(response: Response) -> int | None:
    return response.body.get("error_code") if isinstance(response.body, dict) else None


OWN_WORDS: Final = (
    Allowed("why a body cannot be read is said in words of ours", MESSAGE, codes=(400, 415, 422), is_same_code=True),
    Allowed("why a schema is none is said in words of ours", MESSAGE, codes=(42201,), is_same_code=True),
    Allowed("why a schema is incompatible is said in words of ours", MESSAGE, codes=(409,), is_same_code=True),
    Allowed(
        "why a schema is incompatible is said in words of ours", frozenset({"messages"}), request="(?i)verbose=true"
    ),
)
THEIR_FAILURES: Final = (
    Allowed("theirs fails inside; ours says what is wrong, or does it", ANYTHING, codes=(500,)),
    Allowed(
        "theirs has no type on a response that no route makes", frozenset({"type"}), statuses=(400, 404, 405, 406, 415)
    ),
    Allowed("theirs keeps guids of schemas that were deleted for good", frozenset({"body"}), request="/guids/@?.*/ids"),
    Allowed("the default context's mark alone is no subject; theirs waits for it in vain", ANYTHING, "cx7"),
    Allowed("a context's mark that all share is no subject, and so has no versions", ANYTHING, "cx10|cx11"),
)
SAFER: Final = (
    Allowed("the mark of all contexts begins no subject: prefixes could not name it", ANYTHING, "cx8"),
    Allowed("half a surrogate pair is no text, and no record of the topic can hold it", ANYTHING, "raw", "ud800"),
    Allowed("names have at most 1 024 characters", ANYTHING, "name-", "a{1100}"),
    Allowed(
        "their server refuses such bytes in a path before the registry sees them", ANYTHING, "name-", statuses=(400,)
    ),
    Allowed("an empty segment is no subject: 404 as for any path that is no route", ANYTHING, "path", "//", (), (400,)),
    Allowed("a Content-Type that is none is refused as one that is not read", ANYTHING, "content-type", "Type: x;"),
    Allowed("a semicolon belongs to a name; their server takes what follows for a parameter", ANYTHING, "name-", "a;b"),
    Allowed("their server resolves a dot in a path", ANYTHING, "^cb4$", "^DELETE /contexts/[.]$"),
    Allowed("which of several subjects with an id is named", frozenset({"subject"}), "^cx4$"),
    Allowed("a context's name is looked at in front of every path", ANYTHING, "^cb5$", "schemas/types|v1/|no-such"),
    Allowed("null is no mode", ANYTHING, "mode-values", '"mode": null'),
)
NAMED: Final = (
    Allowed(
        "what only other registries have is refused by its name", MESSAGE, "^path$", codes=(404,), is_same_code=True
    ),
    Allowed(
        "tags are refused by their name, whatever is asked",
        frozenset({"error_code", "message", "status"}),
        "^path$",
        "/versions/1/tags",
    ),
)
OF_THE_INSTANCE: Final = (
    Allowed("the version of the registry", frozenset({"version", "commitId"}), request="/v1/metadata/version"),
    Allowed("the names of the cluster and of the group", frozenset({"scope"}), request="/v1/metadata/id"),
)
NEWER: Final = (
    Allowed(
        "the mode of the registry can be removed, as from 8.1.1 on", ANYTHING, request="^DELETE /mode$", statuses=(405,)
    ),
)
RULE_SETS: Final = (
    Allowed(
        "rule sets are kept, as in Confluent's Cloud and Enterprise; their community edition takes and drops them",
        ANYTHING,
        "^rules$|^member-ruleSet$|^config-(default|override)RuleSet$",
    ),
    Allowed("the same, and a guid depends on them", frozenset({"ruleSet", "guid"}), "^inner-"),
)
REFERENCES: Final = (
    Allowed(
        "a schema of two subjects refers to another as long as one of them is there; theirs forgets it with the first",
        frozenset({"body", "status"}),
        "^shared-",
        "^GET .*/referencedby$|^DELETE .*-t/versions/1$",
    ),
    Allowed(
        "what a schema refers to stays while that is only softly deleted: its id still has readers",
        frozenset({"body", "status"}),
        "^soft-",
        "^DELETE .*-t/versions/1[?]permanent=true$",
    ),
)
TEXTS: Final = (
    Allowed("a default of another type than its field's is refused, as by 8.2", ANYTHING, "^avro-18$"),
    Allowed(
        "theirs does not find an error by its normalized text, but by comparing it: that response says more",
        frozenset({"ts", "deleted"}),
        "^avro-38$",
    ),
    Allowed("a number, a text and a list are no JSON Schema", ANYTHING, "^json-[345]$"),
    Allowed("what its draft calls no schema is refused: validators could not use it", ANYTHING, "^json-(26|29)$"),
    Allowed("a text is a member also where it is empty", frozenset({"schema"}), "^proto-39$"),
)

ALLOWED: Final = (
    *OWN_WORDS,
    *THEIR_FAILURES,
    *SAFER,
    *NAMED,
    *OF_THE_INSTANCE,
    *NEWER,
    *RULE_SETS,
    *REFERENCES,
    *TEXTS,
)
