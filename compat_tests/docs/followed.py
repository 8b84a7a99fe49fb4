"""How each page of the docs is followed, and of what is not followed why, or by which test it is."""

from __future__ import annotations

from typing import Final

from compat_tests.docs.in_order import Page

OF_BUILDERS: Final = ("decisions/", "internals/", "testing/", "samples/")
FAKE: Final = "needs places that only its reader has"
INSIDE: Final = "is run by the command in front of it"
PROMPT: Final = "asks for a password at the prompt"
STARTED: Final = "is how the test starts its broker"
REASONS: Final = frozenset((FAKE, INSIDE, PROMPT, STARTED))
SAMPLES: Final = "is followed by tests/docs/test_samples.py::"
OF_KAFKA: Final = "is followed by compat_tests/docs/test_samples.py::"
OF_SECURITY: Final = "is followed by compat_tests/docs/test_security_samples.py::"
CONNECT: Final = "is followed by compat_tests/connect/test_samples.py::"
TABLE: Final = "test_a_table_becomes_topics_in_json_and_avro_and_a_table_again"
ROLLING: Final = "test_no_acknowledged_record_is_lost_on_the_way_from_plaintext_to_sasl_ssl"
RENEW: Final = (
    "kafka-configs.sh --bootstrap-server 127.0.0.1:9093 --command-config client.properties --entity-type brokers "
    "--entity-name 0 --alter --add-config listener.name.ssl.ssl.keystore.location=certificates/renewed.pem"
)
ACL_OPTIONS: Final = (
    *("--override", "authorizer.class.name=kafka.security.authorizer.AclAuthorizer"),
    *("--override", "super.users=User:ANONYMOUS"),
)
FIRST: Final = ("pip install confluent-kafka", "samples/start/first_message.py")
PIPELINES: Final = "is followed by compat_tests/spark/pipelines/"
SECURITY: Final = "samples/security"
LOG_DIR: Final = ("--override", "log.dirs={home}/broker")
CERTIFICATES: Final = "samples/security/certificates.sh"

OF_START: Final = (
    Page("index", None),
    Page("start/index", (), {"kpybroker dev": STARTED}),
    Page("start/questions", None),
)
GUIDES: Final = (
    Page(
        "guides/testing",
        ("--ephemeral", "--control", "0"),
        {
            "python -m pytest --kafka-bootstrap kafka.example:9093 --kafka-command-config admin.properties": FAKE,
            "python -m pytest --kafka-profile staging": FAKE,
        },
    ),
    Page("guides/retention"),
    Page("guides/groups-and-lag", before=FIRST),
    Page(
        "guides/schema-registry",
        ("--ephemeral", "--registry", "0"),
        {
            "samples/registry/users.sh": "is followed by compat_tests/registry/test_samples.py::test_a_user_is_added",
            "samples/registry/read_orders.py": (
                "is followed by compat_tests/registry/test_samples.py::test_spark_shows_orders_as_a_table"
            ),
        },
    ),
    Page("guides/faults", ("--ephemeral", "--control", "0")),
    Page("guides/failing-cluster", ("--ephemeral", "--brokers", "3", "--control", "0")),
    Page("guides/client-metrics"),
    Page(
        "guides/command-line",
        ("--ephemeral", "--brokers", "3", "--override", "default.replication.factor=1", *ACL_OPTIONS),
        {
            "kpybroker doctor broker.example.com:9093 --command-config client.properties": FAKE,
            "kpybroker mirror orders payments -b old:9092 --to new:9092 --group copy": FAKE,
            "kpybroker user set alice --mechanism SCRAM-SHA-512": PROMPT,
            "samples/commands/profiles.sh": f"{SAMPLES}test_a_profile_is_made_and_used",
            "samples/commands/programs.sh": f"{SAMPLES}test_programs_use_what_the_commands_print",
            "samples/commands/schemas.sh": f"{SAMPLES}test_values_with_a_schema_are_json",
        },
        before=(
            "kpybroker topic create greetings app-1",
            "echo hello | kpybroker topic produce app-1",
            "kpybroker topic consume app-1 --group app-1 --num 1",
            "echo hello | kpybroker topic produce greetings",
            "kpybroker topic consume greetings --group readers --num 1",
        ),
    ),
    Page("guides/ci", None, {"samples/ci/service.sh": f"{SAMPLES}test_a_shell_script_can_wait_for_the_broker"}),
    Page(
        "guides/logs",
        ("--ephemeral",),
        {
            f"samples/logs/{name}.sh": f"{OF_KAFKA}test_levels_change_at_run_time_and_state_changes_are_merged"
            for name in ("levels", "merge")
        },
    ),
    Page(
        "guides/transactions",
        ("--ephemeral",),
        {f"samples/delivery/{name}.py": INSIDE for name in ("at_most_once", "at_least_once", "exactly_once")},
    ),
    Page("guides/zookeeper-clients", ("--ephemeral", "--zookeeper-port", "0"), {"samples/zookeeper/start.sh": STARTED}),
    Page("guides/new-groups"),
    Page(
        "guides/console",
        ("--ephemeral", "--control", "0", "--registry", "0"),
        before=("pip install 'kpybroker[registry]'",),
    ),
    Page(
        "guides/connect",
        None,
        {f"samples/connect/{name}.sh": f"{CONNECT}{TABLE}" for name in ("database", "connectors", "look")},
    ),
    Page("guides/containers", before=("pip install .",)),
    Page(
        "guides/metrics",
        ("--ephemeral", "--override", "kpybroker.metrics.port={metrics}"),
        before=FIRST,
        places={"localhost:9404": "localhost:{metrics}"},
    ),
    Page(
        "guides/backup",
        (),
        before=FIRST,
        stopped=("samples/backup/backup.sh",),
        given={"samples/backup/backup.sh": ("mkdir ~/backup",)},
        places={"/backup/": "{home}/backup/"},
    ),
    Page(
        "guides/processes",
        None,
        {
            "samples/processes/balance.sh": (
                "is followed by compat_tests/cluster/placement/test_balance.py::"
                "test_a_hot_topic_spreads_by_load_and_what_is_idle_stays"
            ),
        },
        before=("pip install .",),
        places={"/var/lib/kpybroker": "{home}/kpybroker", "PLAINTEXT://127.0.0.1:9092": "PLAINTEXT://127.0.0.1:{port}"},
    ),
    Page(
        "guides/queues",
        given={"kpybroker topic produce jobs < jobs.txt": ("printf 'resize\\nrotate\\n' > jobs.txt",)},
    ),
    Page(
        "guides/mirroring",
        before=(
            "kpybroker topic create shop.orders orders",
            "echo one | kpybroker topic produce shop.orders",
            "kpybroker topic create orders -b new.example.com:9092",
        ),
        places={"old.example.com:9092": "127.0.0.1:{port}"},
        others={"new.example.com:9092": ("--ephemeral",)},
    ),
    Page(
        "guides/three-brokers",
        ("--ephemeral", "--brokers", "3"),
        {"kpybroker server /etc/kpybroker/server.properties": FAKE},
        before=("kpybroker topic create clicks",),
        tools=True,
    ),
)
OF_SECURITY_PAGES: Final = (
    Page(
        "guides/security/acls",
        ("server", f"{SECURITY}/acls.properties", *LOG_DIR),
        folder=SECURITY,
        tools=True,
    ),
    Page(
        "guides/security/sasl",
        ("server", f"{SECURITY}/sasl.properties", *LOG_DIR),
        before=(CERTIFICATES,),
        stopped=(CERTIFICATES,),
        given={
            "kpybroker ping 127.0.0.1:9092 --command-config client.properties": (
                "cp sasl-client.properties client.properties",
            )
        },
        folder=SECURITY,
    ),
    Page(
        "guides/security/tls",
        ("server", f"{SECURITY}/tls.properties", *LOG_DIR),
        {"keytool -importkeystore -srckeystore old.jks -destkeystore store.p12 -deststoretype PKCS12": FAKE},
        stopped=("kpybroker dev --tls", CERTIFICATES),
        given={
            RENEW: ("cp certificates/broker.pem certificates/renewed.pem", "cp tls-client.properties client.properties")
        },
        places={"127.0.0.1:9093": "127.0.0.1:{port}"},
        folder=SECURITY,
        tools=True,
    ),
    Page("guides/security/quotas", tools=True),
    Page(
        "guides/security/tokens",
        ("server", f"{SECURITY}/tokens/server.properties"),
        before=("pip install .",),
        places={"/var/lib/kpybroker": "{home}/kpybroker"},
        folder=f"{SECURITY}/tokens",
        tools=True,
    ),
    Page(
        "guides/security/oauthbearer",
        None,
        {"samples/security/oauthbearer/client.py": f"{OF_SECURITY}test_oauthbearer"},
    ),
    Page(
        "guides/security/kerberos",
        None,
        {"samples/security/kerberos/kcat.sh": f"{OF_SECURITY}test_kerberos"},
    ),
)
REFERENCE: Final = (
    Page("reference/command-line", None),
    Page("reference/feature-levels"),
    Page("reference/python-api"),
    Page("reference/registry", ("--ephemeral", "--registry", "0")),
)
PAGES: Final = (*OF_START, *GUIDES, *OF_SECURITY_PAGES, *REFERENCE)
NOT_FOLLOWED: Final = {
    "examples/": "is followed by compat_tests/docs/test_examples.py::test_its_commands_work_in_a_fresh_environment",
    "guides/console-connect": (
        "is followed by compat_tests/console/connect/test_kafka_connect.py::"
        "test_a_connector_is_made_of_a_plugins_fields"
    ),
    "guides/moving": f"{SAMPLES}test_a_broker_goes_on_with_the_files_of_another",
    "guides/pipelines": f"{PIPELINES}test_standalone.py::test_balances_of_the_ledger_by_spark_submit",
    "guides/pipelines/logs": f"{PIPELINES}test_logs.py::test_results_are_those_of_a_recount",
    "guides/security/rolling-change": f"is followed by compat_tests/security/test_rolling_change.py::{ROLLING}",
    "guides/spark": "is followed by compat_tests/spark/test_sample.py::test_the_sample_shows_a_topic",
    "guides/streams-groups": (
        "is followed by tests/client/actions/test_streams.py::test_list_and_describe_say_what_a_streams_group_is"
    ),
    "guides/systemd": "is followed by compat_tests/deploy/test_systemd.py::test_a_stop_is_in_order",
}
"""By what a page's name begins with."""
