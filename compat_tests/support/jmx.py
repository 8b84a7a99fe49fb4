"""A JVM whose MBeans can be read: by its port for JMX, and by Jolokia's agent."""

from __future__ import annotations

from compat_tests.deps import jars_dir


def jmx_options(port: int) -> list[str]:
    """The options of a JVM that serves JMX at this port of loopback, to anyone."""
    return [
        "-Dcom.sun.management.jmxremote",
        "-Dcom.sun.management.jmxremote.authenticate=false",
        "-Dcom.sun.management.jmxremote.ssl=false",
        "-Djava.rmi.server.hostname=127.0.0.1",
        *(f"-Dcom.sun.management.jmxremote.{kind}={port}" for kind in ("port", "rmi.port")),
    ]


def jmx_url(port: int) -> str:
    return f"service:jmx:rmi:///jndi/rmi://127.0.0.1:{port}/jmxrmi"


def jolokia_agent(port: int, *options: str) -> str:
    """The option of a JVM with Jolokia's agent at this port of loopback; `options` are the agent's own."""
    (jar,) = jars_dir("jolokia").glob("jolokia*.jar")
    return f"-javaagent:{jar}={','.join([f'port={port}', 'host=127.0.0.1', 'discoveryEnabled=false', *options])}"
