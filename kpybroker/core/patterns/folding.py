"""Which characters are equal when case is ignored: Unicode's simple case folding, as RE2/J 1.8 has it.

Python's own methods say it of most characters. Those of which they do not say all, or too much, are listed.
"""

from __future__ import annotations

from typing import Final

FOLD_MAX: Final = 0x1044F
"""Above it RE2/J folds nothing."""

_GROUPS: Final = """
Kk\u212a Ss\u017f \u00b5\u039c\u03bc \u00c5\u00e5\u212b \u00df\u1e9e \u01c4\u01c5\u01c6 \u01c7\u01c8\u01c9
\u01ca\u01cb\u01cc \u01f1\u01f2\u01f3 \u0345\u0399\u03b9\u1fbe \u0392\u03b2\u03d0 \u0395\u03b5\u03f5
\u0398\u03b8\u03d1\u03f4 \u039a\u03ba\u03f0 \u03a0\u03c0\u03d6 \u03a1\u03c1\u03f1 \u03a3\u03c2\u03c3
\u03a6\u03c6\u03d5 \u03a9\u03c9\u2126 \u0412\u0432\u1c80 \u0414\u0434\u1c81 \u041e\u043e\u1c82 \u0421\u0441\u1c83
\u0422\u0442\u1c84\u1c85 \u042a\u044a\u1c86 \u0462\u0463\u1c87 \u1c88\ua64a\ua64b \u1e60\u1e61\u1e9b
\u0130 \u0131
"""
"""The last two are equal to themselves alone: outside Turkic languages they are other letters than i."""

_ORBITS: Final = {ord(each): tuple(map(ord, group)) for group in _GROUPS.split() for each in group}


def orbit(code: int) -> tuple[int, ...]:
    """All code points that equal this one when case is ignored, and itself."""
    found = _ORBITS.get(code)
    if found is not None:
        return found
    if code > FOLD_MAX:
        return (code,)
    char = chr(code)
    others = {char.lower(), char.upper(), char.title()} - {char}
    return (code, *(ord(other) for other in others if len(other) == 1))
