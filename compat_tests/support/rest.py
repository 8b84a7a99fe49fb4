"""JSON over HTTP, as Trogdor's coordinator and Kafka Connect speak it."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

RESPONSE_S = 120.0


def call(method: str, url: str, body: object = None) -> Any:
    """What `url` returns; None without a body. A refusal, or no one there, is an AssertionError: "not yet"."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=RESPONSE_S) as response:
            said = response.read()
    except urllib.error.HTTPError as refused:
        raise AssertionError(f"{method} {url}: {refused.code} {refused.read().decode()}") from None
    except OSError as refused:
        raise AssertionError(f"{method} {url}: {refused}") from None
    return json.loads(said) if said else None
