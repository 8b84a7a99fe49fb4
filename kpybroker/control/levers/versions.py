"""The versions of APIs that a broker serves at most, as a test gives them."""

from __future__ import annotations

from collections.abc import Mapping

from kpybroker.broker.requests.served.apis import SERVED
from kpybroker.broker.requests.served.kafka_releases import RELEASES, capped, release_named
from kpybroker.broker.requests.served.release import cap_of_release
from kpybroker.broker.requests.served.version_cap import VersionCap
from kpybroker.control.errors import ControlError, did_you_mean
from kpybroker.control.rules.errors import nearest
from kpybroker.wire.api import API_INFO, ApiKey

Asked = list[int] | int | None
"""[oldest, newest], or the newest, or None: not served."""


def version_cap(as_version: str | None, apis: Mapping[str, Asked]) -> VersionCap | None:
    """What a release serves, and what `apis` change of that; None if both are empty. Raises ControlError."""
    if as_version is None and not apis:
        return None
    cap = VersionCap(dict(SERVED))
    if as_version is not None:
        release = release_named(as_version)
        if release is None:
            cause = f"cap_versions: there is no table of Kafka `{as_version}`"
            raise ControlError(cause, nearest(as_version, RELEASES))
        cap = cap_of_release(release)
    served = dict(cap.served)
    for name, asked in apis.items():
        key = _key(name)
        versions = _range(name, asked)
        if versions is None:
            served.pop(key, None)
            continue
        found = capped({key: SERVED[key]}, {key: versions})
        if not found:
            oldest, newest = SERVED[key]
            raise ControlError(
                f"cap_versions: no version of {name} from {versions[0]} to {versions[1]} is served",
                f"give some of {oldest} to {newest}",
            )
        served.update(found)
    if ApiKey.API_VERSIONS not in served:
        raise ControlError("cap_versions: without ApiVersions no client can connect", "leave it in")
    named = {_key(name) for name in apis}
    return cap._replace(
        served=served, advertised={key: versions for key, versions in cap.advertised.items() if key not in named}
    )


def _key(name: str) -> ApiKey:
    known = {API_INFO[key].name: key for key in SERVED}
    if name not in known:
        raise ControlError(f"cap_versions: there is no API `{name}`", did_you_mean(name, known))
    return known[name]


def _range(name: str, asked: Asked) -> tuple[int, int] | None:
    if asked is None:
        return None
    versions = [0, asked] if isinstance(asked, int) else asked
    if len(versions) != 2:
        raise ControlError(f"cap_versions: {versions} is no range of {name}", "give the oldest and the newest version")
    return versions[0], versions[1]
