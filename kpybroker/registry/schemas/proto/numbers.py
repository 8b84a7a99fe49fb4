"""Numbers of options with `normalize=true`: decimal, without an exponent, with at most three digits behind the point.

So does Java's ``DecimalFormat``, which Confluent's registry writes them with; other texts stay as they are.
"""

from __future__ import annotations

import math
import re
import struct
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Final

HEX: Final = re.compile(r"(-?)(?:0[xX]|#)([0-9a-fA-F]+)")
OCTAL: Final = re.compile(r"(-?)0([0-7]+)")
DECIMAL: Final = re.compile(r"(-?(?:[0-9]+(?:\.([0-9]*))?|\.([0-9]+))(?:[eE][+-]?[0-9]{1,4})?)[fFdDlL]?")
LENGTH_MAX: Final = 400
FLOAT_DIGITS: Final = 7
DOUBLE_DIGITS: Final = 16
THOUSANDTH: Final = Decimal("0.001")


def short(text: str) -> str:
    """The number of a text."""
    if len(text) > LENGTH_MAX:
        return text
    if found := HEX.fullmatch(text):
        return f"{found.group(1)}{int(found.group(2), 16)}"
    if (found := OCTAL.fullmatch(text)) and len(text) > 1:
        return f"{found.group(1)}{int(found.group(2), 8)}"
    found = DECIMAL.fullmatch(text)
    if found is None:
        return text
    value = Decimal(found.group(1))
    if value.adjusted() > LENGTH_MAX:
        return text
    digits = len(found.group(2) or found.group(3) or "")
    is_whole = digits == 0 and not re.search(r"[.eEfFdD]", text)
    if is_whole:
        return f"{int(value)}"
    value = _stored(value, DOUBLE_DIGITS if re.search("[eE]", text) else digits)
    rounded = value.quantize(THOUSANDTH, ROUND_HALF_EVEN, Context(prec=LENGTH_MAX * 30))
    whole, _, rest = f"{rounded:f}".partition(".")
    rest = rest.rstrip("0")
    return f"{whole}.{rest}" if rest else whole


def _stored(value: Decimal, digits: int) -> Decimal:
    """In 32 or 64 bits, by the digits that were written, where it can be."""
    if digits <= FLOAT_DIGITS:
        single = _single(float(value))
        if math.isfinite(single) and (single or not value):
            return Decimal(single)
    number = float(value)
    return Decimal(number) if digits <= DOUBLE_DIGITS and math.isfinite(number) and (number or not value) else value


def _single(number: float) -> float:
    try:
        (found,) = struct.unpack(">f", struct.pack(">f", number))
    except OverflowError:
        return math.inf
    return float(found)
