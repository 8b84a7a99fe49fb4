"""Equal when case is ignored: what Python says of all characters together, without the two letters of Turkish."""

from __future__ import annotations

from collections import defaultdict

from kpybroker.core.patterns.folding import FOLD_MAX, orbit

TURKISH = {0x130, 0x131}


def test_orbits_are_what_any_change_of_case_leads_to() -> None:
    groups = [{code} for code in range(FOLD_MAX + 1)]
    for code in set(range(FOLD_MAX + 1)) - TURKISH:
        char = chr(code)
        for other in (char.lower(), char.upper(), char.casefold()):
            if len(other) == 1 and ord(other) not in TURKISH and ord(other) not in groups[code]:
                groups[code] |= groups[ord(other)]
                for each in groups[code]:
                    groups[each] = groups[code]
    wrong = defaultdict(list)
    for code, group in enumerate(groups):
        equal = orbit(code)
        if set(equal) != group:
            wrong[code].append(equal)
    assert not wrong


def test_nothing_is_folded_above_what_the_tables_of_re2j_have() -> None:
    assert orbit(0x1E900) == (0x1E900,)
    assert chr(0x1E900).lower() != chr(0x1E900)
