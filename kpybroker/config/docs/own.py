"""What our own keys are for. Loaded only when somebody asks for documentation."""

from __future__ import annotations

from typing import Final

DOCS: Final[dict[str, str]] = {
    "kpybroker.validate.records": "Whether every produced record is walked and validated as Kafka does. Otherwise "
    "records are looked at only where the answer depends on them; batch headers and checksums always are.",
    "kpybroker.jaas.config.file": "JAAS login file with the credentials for ZooKeeper, in its Client context. "
    "KAFKA_OPTS names it too, by -Djava.security.auth.login.config.",
}
