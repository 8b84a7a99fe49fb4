"""One sentence on each ZooKeeper key. Imported only for DescribeConfigs with documentation and for the page."""

from __future__ import annotations

from typing import Final

# fmt: off
DOCS: Final[dict[str, str]] = {
    "zookeeper.connect": (
        "ZooKeeper servers as host:port,host:port, with an optional /path at the end. Without it, coordination is "
        "embedded."
    ),
    "zookeeper.session.timeout.ms": "How long ZooKeeper keeps this broker's session without a heartbeat.",
    "zookeeper.connection.timeout.ms": (
        "How long the broker waits for ZooKeeper at start. Without it, the session timeout is used."
    ),
    "zookeeper.set.acl": "Whether znodes are created with ACLs.",
    "zookeeper.max.in.flight.requests": "How many requests to ZooKeeper may be in flight.",
    "zookeeper.ssl.client.enable": "Whether ZooKeeper is reached over TLS.",
    "zookeeper.clientCnxnSocket": "Java class of the connection to ZooKeeper; Kafka needs the one of Netty for TLS.",
    "zookeeper.ssl.keystore.location": "File of the key store for ZooKeeper.",
    "zookeeper.ssl.keystore.password": "Password of the key store for ZooKeeper.",
    "zookeeper.ssl.keystore.type": "Format of the key store for ZooKeeper.",
    "zookeeper.ssl.truststore.location": "File of the trust store for ZooKeeper.",
    "zookeeper.ssl.truststore.password": "Password of the trust store for ZooKeeper.",
    "zookeeper.ssl.truststore.type": "Format of the trust store for ZooKeeper.",
    "zookeeper.ssl.protocol": "TLS protocol to negotiate with ZooKeeper.",
    "zookeeper.ssl.enabled.protocols": "TLS protocols allowed with ZooKeeper.",
    "zookeeper.ssl.cipher.suites": "Cipher suites allowed with ZooKeeper.",
    "zookeeper.ssl.endpoint.identification.algorithm": (
        "How ZooKeeper's host name is checked against its certificate."
    ),
    "zookeeper.ssl.crl.enable": "Whether certificate revocation lists are consulted for ZooKeeper.",
    "zookeeper.ssl.ocsp.enable": "Whether OCSP is consulted for ZooKeeper.",
}
# fmt: on
