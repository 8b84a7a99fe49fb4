"""ZooKeeper keys, for a cluster whose coordination is not embedded.

Rows as in `keys.definition`, in Kafka's order.
"""

from __future__ import annotations

from typing import Final

from kpybroker.config.keys.definition import (
    HIGH,
    LOW,
    MEDIUM,
    READ_ONLY,
    Row,
)
from kpybroker.config.keys.status import (
    HONOURED,
    NO_CNXN_SOCKET,
    NO_REVOCATION,
)
from kpybroker.config.values import (
    ANYTHING,
    BOOLEAN,
    INT,
    LIST,
    PASSWORD,
    STRING,
    at_least,
)

# fmt: off
ROWS: Final[tuple[Row, ...]] = (
    ("zookeeper.connect", STRING, None, ANYTHING, HIGH, READ_ONLY, HONOURED),
    ("zookeeper.session.timeout.ms", INT, "18000", ANYTHING, HIGH, READ_ONLY, HONOURED),
    ("zookeeper.connection.timeout.ms", INT, None, ANYTHING, HIGH, READ_ONLY, HONOURED),
    ("zookeeper.set.acl", BOOLEAN, "false", ANYTHING, HIGH, READ_ONLY, HONOURED),
    ("zookeeper.max.in.flight.requests", INT, "10", at_least(1), HIGH, READ_ONLY, HONOURED),
    ("zookeeper.ssl.client.enable", BOOLEAN, "false", ANYTHING, MEDIUM, READ_ONLY, HONOURED),
    ("zookeeper.clientCnxnSocket", STRING, None, ANYTHING, MEDIUM, READ_ONLY, NO_CNXN_SOCKET),
    ("zookeeper.ssl.keystore.location", STRING, None, ANYTHING, MEDIUM, READ_ONLY, HONOURED),
    ("zookeeper.ssl.keystore.password", PASSWORD, None, ANYTHING, MEDIUM, READ_ONLY, HONOURED),
    ("zookeeper.ssl.keystore.type", STRING, None, ANYTHING, MEDIUM, READ_ONLY, HONOURED),
    ("zookeeper.ssl.truststore.location", STRING, None, ANYTHING, MEDIUM, READ_ONLY, HONOURED),
    ("zookeeper.ssl.truststore.password", PASSWORD, None, ANYTHING, MEDIUM, READ_ONLY, HONOURED),
    ("zookeeper.ssl.truststore.type", STRING, None, ANYTHING, MEDIUM, READ_ONLY, HONOURED),
    ("zookeeper.ssl.protocol", STRING, "TLSv1.2", ANYTHING, LOW, READ_ONLY, HONOURED),
    ("zookeeper.ssl.enabled.protocols", LIST, None, ANYTHING, LOW, READ_ONLY, HONOURED),
    ("zookeeper.ssl.cipher.suites", LIST, None, ANYTHING, LOW, READ_ONLY, HONOURED),
    ("zookeeper.ssl.endpoint.identification.algorithm", STRING, "HTTPS", ANYTHING, LOW, READ_ONLY, HONOURED),
    ("zookeeper.ssl.crl.enable", BOOLEAN, "false", ANYTHING, LOW, READ_ONLY, NO_REVOCATION),
    ("zookeeper.ssl.ocsp.enable", BOOLEAN, "false", ANYTHING, LOW, READ_ONLY, NO_REVOCATION),
)
# fmt: on
