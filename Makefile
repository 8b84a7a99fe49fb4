# Every target installs what it needs itself. See docs/testing/suites.md for the suites.
# The distribution's Python first: built without a shared library of its own, it is a tenth faster than what pyenv builds.
PYTHON ?= $(shell for python in /usr/bin/python3.11 python3.11 python3; do \
	$$python -c 'import ensurepip, venv' 2>/dev/null && command -v $$python && break; done)
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest
# The tests wait for timers and JVMs most of the time, so there are more workers than processors. WORKERS=0 runs one test
# after the other.
WORKERS ?= 5

# Compiled modules make every start several times quicker.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install run test lint all-tests test-times flaky unit compat-deps compat compat-of-3.9 compat-secure compat-kafka attacks compat-portable compat-pipelines field wheel-test deploy-test ranges test-deps bench bench-start bench-testing bench-growth bench-ten-thousand bench-cluster bench-failover bench-beside bench-ceiling bench-extras bench-assignors bench-groups bench-kafka-4 bench-heartbeats bench-scale bench-loop bench-quotas bench-budget bench-share bench-shortcuts bench-tls bench-metrics soak soak-eos soak-eos-cluster soak-cluster soak-share soak-testing soak-metrics soak-hours soak-schemas mutants replication-matrix power-cuts suites kafka-tests exchange fuzz search demo demo-activity demo-operations demo-ledger demo-logs demo-changes demo-suggestion demo-warehouse demos specs clean compatibility docs bench-hostile bench-pipelines wide console-hour simulate

help:            ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/' | expand -t 16

$(BIN)/kpybroker: pyproject.toml
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "kpybroker needs Python 3.11 or newer: make PYTHON=/path/to/python3.11"; exit 2; }
	"$(PYTHON)" -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable .
	$(BIN)/python -m compileall -q kpybroker
	@touch $@

install: $(BIN)/kpybroker  ## .venv with the broker in it

run: install     ## start a broker on 127.0.0.1:9092 and say what to do next
	$(BIN)/kpybroker dev

$(VENV)/.test-stamp: pyproject.toml $(BIN)/kpybroker
	$(BIN)/python -m pip install --quiet --editable '.[test,lint,docs,tools,spark]'
	@touch $@

test-deps: $(VENV)/.test-stamp  ## what the tests need: Python packages, JVM jars, kcat
	$(BIN)/python -m compat_tests.deps

lint: $(VENV)/.test-stamp  ## ruff, mypy --strict, import contracts and circles, sizes, names, words, stale pages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --platform win32 --cache-dir .mypy_cache/win32 kpybroker
	$(BIN)/mypy --platform darwin --cache-dir .mypy_cache/darwin kpybroker
	$(BIN)/lint-imports
	$(BIN)/python -m tests.house
	$(BIN)/python -m protocol_specs.generate --check
	$(BIN)/python -m compat_tests.compatibility --check

# Lint runs next to the tests. If it fails, so does this, and what it said is the end of the output.
test: test-deps  ## everything that must pass before a change lands
	@$(MAKE) --no-print-directory lint > .cache/lint.txt 2>&1 & lint=$$!; \
	$(MAKE) --no-print-directory all-tests; tests=$$?; \
	wait $$lint; lint=$$?; test $$lint = 0 || { cat .cache/lint.txt; echo "make test: lint has failed"; }; \
	exit $$((tests || lint))

# Every worker would rewrite the asserts of all files by itself. Two processes do it for them, before the first run.
$(VENV)/.collected: $(VENV)/.test-stamp
	@$(PYTEST) compat_tests --collect-only --quiet > /dev/null & $(PYTEST) tests --collect-only --quiet > /dev/null; wait
	@touch $@

all-tests: test-deps $(VENV)/.collected
	rm -f .cache/failed.txt
	$(PYTEST) compat_tests tests -n $(WORKERS) --durations=15 --junitxml=.cache/test.xml \
		--failed-to=.cache/failed.txt --costs-to=.cache/test-costs.txt || \
		$(BIN)/python -m tests.rerun .cache/failed.txt

test-times:      ## write tests/times.txt, by which the longest tests begin first, from the last make test
	$(BIN)/python -m tests.scopes .cache/test-costs.txt

flaky: test-deps  ## tests that fail by chance: all under load, then with one worker: an hour; FLAKY='tests/storage'
	WORKERS=$(WORKERS) $(BIN)/python -m tests.flaky $(FLAKY)

unit: $(VENV)/.test-stamp  ## the quick tests of tests/: no other processes, no long searches; 80 seconds
	$(PYTEST) tests --quick -n $(WORKERS)

compat-deps: test-deps
	$(BIN)/python -m compat_tests.deps clients field

compat: compat-deps  ## other people's clients and tools against kpybroker
	$(PYTEST) compat_tests --broker=kpybroker --all-versions -n $(WORKERS) --junitxml=.cache/compat-kpybroker.xml

compat-of-3.9: compat-deps  ## the same in the place of Kafka 3.9: its APIs and versions, and no features
	$(PYTEST) compat_tests --broker=kpybroker --kafka-version=3.9 --all-versions -n $(WORKERS) --junitxml=.cache/compat-3.9.xml

wide: test-deps  ## the wide tests of tests/, which make test leaves out as compat has those of compat_tests/: 1 minute
	$(PYTEST) tests -m wide -n $(WORKERS)

attacks: test-deps  ## hostile requests, records, logins, crowds and schemas, those that take long too: 10 minutes
	$(PYTEST) compat_tests/overload compat_tests/registry/hostile --all-versions
	KPYBROKER_TEST_HOSTILE_TEXTS=600 $(PYTEST) tests/registry/texts/test_hostile_texts.py

compat-portable: compat-deps  ## the same in portable mode, under Windows' rules for files
	KPYBROKER_PORTABLE=1 PYTHONPATH=$(CURDIR)/tests/support/windows \
		$(PYTEST) compat_tests --broker=kpybroker --all-versions -n $(WORKERS) --junitxml=.cache/compat-portable.xml

compat-kafka: compat-deps  ## the same test ids against real Kafka 3.9.1 on ZooKeeper
	$(PYTEST) compat_tests --broker=kafka --all-versions -n $(WORKERS) --junitxml=.cache/compat-kafka.xml

compat-pipelines: test-deps  ## Spark, all of it: pipelines killed, topics changed, Avro, Debezium, a standalone cluster: half an hour
	$(BIN)/python -m compat_tests.deps field
	$(PYTEST) compat_tests/spark --all-versions -n 2 --junitxml=.cache/compat-pipelines.xml

field: test-deps  ## tools of the 0.8 and 0.10 era, Connect with PostgreSQL, Flink, Storm; then the same on Kafka: 1 hour
	$(BIN)/python -m compat_tests.deps field
	$(PYTEST) compat_tests/field compat_tests/connect --all-versions --broker=kpybroker $(FIELD) \
		--junitxml=.cache/field-kpybroker.xml
	$(PYTEST) compat_tests/field compat_tests/connect --all-versions --broker=kafka $(FIELD) \
		--junitxml=.cache/field-kafka.xml --deselect compat_tests/field/test_same_output.py

wheel-test: $(VENV)/.test-stamp  ## sdist and wheel, installed into a fresh environment of each Python that is here
	$(BIN)/python -m compat_tests.deps python
	$(PYTEST) compat_tests/packaging/test_wheel.py --all-versions

deploy-test: $(VENV)/.test-stamp  ## docs/deploy in a fresh Debian: the image is built and run, systemd boots the unit; root only, 3 minutes
	$(BIN)/python -m compat_tests.deps debootstrap
	$(PYTEST) compat_tests/deploy --deploy

ranges: test-deps  ## unit tests with the lowest and the newest dependencies, on each Python: 17 minutes; RANGES='3.13 tests/wire'
	$(BIN)/python -m compat_tests.deps python
	$(BIN)/python -m compat_tests.packaging.ranges $(RANGES)

compatibility: $(VENV)/.test-stamp  ## write docs/reference/compatibility.md from the ledgers and the last results
	$(BIN)/python -m compat_tests.compatibility --results $(wildcard .cache/compat-kpybroker.xml .cache/compat-kafka.xml)

fuzz: $(VENV)/.test-stamp  ## every parser of what strangers send, guided by coverage, 10^7 requests first: half an hour; FUZZ='jaas --runs 1000'
	$(BIN)/python -m pip install --quiet --editable '.[fuzz]'
	$(BIN)/python -m tests.fuzz.run $(or $(FUZZ),--times requests=100 --write)

search: $(VENV)/.test-stamp  ## property and stateful tests with other examples than make test's: 10 minutes; SEARCH='tests/core'
	$(PYTEST) $(or $(SEARCH),tests) -m hypothesis --hypothesis-profile=search -n $(WORKERS)

bench-start: test-deps  ## time to the first message and idle memory, next to real Kafka's
	$(BIN)/python -m compat_tests.bench.start

bench-testing: test-deps  ## what a test pays for its broker, next to real Kafka: 4 minutes
	$(BIN)/python -m compat_tests.bench.testing --write

bench: test-deps  ## both brokers' speed into docs/internals/benchmarks: 49 quiet minutes; BENCH=--quick takes 8 and writes nothing
	$(BIN)/python -m compat_tests.bench.run $(BENCH)

bench-ten-thousand: test-deps  ## 10 000 partitions, topics, groups, transactional ids, ACLs, connections, and a failover, next to Kafka's: 2 hours; BENCH='--only partitions --ours'
	$(BIN)/python -m compat_tests.bench.ten_thousand.run $(BENCH)

bench-growth: test-deps  ## does the ratio to Kafka hold from 1 to 1 000 partitions and connections, and to 20 GB of log: 12 minutes
	$(BIN)/python -m compat_tests.bench.growth $(BENCH)

bench-cluster: test-deps  ## three brokers with three replicas of everything, next to three of Kafka's: 10 minutes
	$(BIN)/python -m compat_tests.bench.cluster $(BENCH)

bench-failover: test-deps  ## how long until the next leader serves after a kill and after a stop, next to Kafka's: 12 minutes
	$(BIN)/python -m compat_tests.cluster.failover $(BENCH)

bench-ceiling: test-deps  ## what a Java producer with a core of its own makes of a broker that only responds: 35 minutes
	$(BIN)/python -m compat_tests.bench.ceiling $(BENCH)

bench-beside: test-deps  ## a hot producer's p99 beside compaction, retention, a cold replay, slow consumers: 10 minutes
	$(BIN)/python -m compat_tests.bench.beside $(BENCH)

bench-groups: test-deps  ## how long a hundred members of one group take to settle in either protocol, next to real Kafka: 10 minutes
	$(BIN)/python -m compat_tests.bench.groups $(BENCH)

bench-kafka-4: test-deps  ## the lines that README shows, next to Kafka 4.3.1: 16 minutes of a quiet machine
	$(BIN)/python -m compat_tests.bench.kafka_4 $(BENCH)

bench-share: test-deps  ## records a second of share groups of 1, 4 and 16 members, next to Kafka 4.3.1: 11 minutes of a quiet machine
	$(BIN)/python -m compat_tests.bench.share $(BENCH)

console-hour: test-deps  ## a console of 10 000 partitions and 1 000 groups: memory, processor time and first paint; MINUTES=60, quiet
	$(BIN)/python -m compat_tests.console.hour --minutes $(or $(MINUTES),60)

bench-heartbeats: $(VENV)/.test-stamp  ## µs of CPU of a heartbeat (KIP-848) that changes nothing, of 10 000 members and 10 000 groups: 2 minutes
	$(BIN)/python -m compat_tests.bench.heartbeats

bench-extras: test-deps  ## what a control channel, faults, the request log, ACLs and many schemas cost: 6 minutes
	$(BIN)/python -m compat_tests.bench.extras.run $(BENCH)

bench-assignors: $(VENV)/.test-stamp  ## who gets which of 10 000 partitions among 10 000 members: seconds in all, and the longest slice
	$(BIN)/python -m compat_tests.groups.speed

bench-quotas: test-deps  ## how near clients come to the rate that a quota sets, next to real Kafka: 5 minutes
	$(BIN)/python -m compat_tests.bench.security.quotas

bench-tls: test-deps  ## produce and consume over TLS, handshakes, memory of an idle connection, next to Kafka's: 6 minutes
	$(BIN)/python -m compat_tests.bench.security.tls $(BENCH)

bench-hostile: test-deps  ## a logged-in client's p99 under half-open TLS handshakes and wrong logins, next to Kafka's: 8 minutes; BENCH=--crowds: under crowds, 4 minutes
	$(BIN)/python -m compat_tests.bench.security.hostile $(BENCH)

bench-pipelines: test-deps  ## rows/s, CPU and memory of each pipeline on 1, 2 and 4 executors, next to Kafka: hours; BENCH='--rows 50000 --only ledger'
	$(BIN)/python -m compat_tests.bench.pipelines.run $(BENCH)

bench-metrics: test-deps  ## what metrics cost a request, and a scrape of 10 000 partitions: 5 minutes
	$(BIN)/python -m compat_tests.bench.extras.metrics $(BENCH)

bench-scale: test-deps  ## requests/s and MB/s of one process and of two, next to Kafka on the same cores: 5 minutes
	$(BIN)/python -m compat_tests.bench.scale $(BENCH)

bench-loop: test-deps  ## does the worst input hold the loop for more than 50 ms of processor time: 3 minutes
	$(PYTEST) compat_tests/overload/test_loop.py --exact --all-versions

bench-budget: $(VENV)/.test-stamp  ## the microseconds of one produce and one fetch, stage by stage
	$(BIN)/python -m compat_tests.bench.budget

bench-shortcuts: test-deps  ## what each shortcut for speed saves, by brokers without one of them: 15 minutes
	$(BIN)/python -m compat_tests.bench.shortcuts $(BENCH)

kafka-tests: test-deps  ## Kafka 4.3.1's own tests of clusters over the wire, a fresh broker for each: hours; TESTS='ListGroups' for some
	$(BIN)/python -m compat_tests.suites.kafka43.run $(TESTS)

soak: test-deps  ## crash matrix, failing calls and damage whole; two hundred kills under load; power cuts where one is root
	$(BIN)/python -m pytest --quiet --whole -o faulthandler_timeout=0 --seed $$(date +%s) \
		tests/storage tests/broker/lifecycle/test_damage.py
	$(BIN)/python -m compat_tests.crash.soak --kills 200
	if [ "$$(id -u)" = 0 ]; then $(MAKE) power-cuts; else echo "soak: power cuts are left out, they need root: sudo make power-cuts"; fi

power-cuts: test-deps  ## a hundred power cuts of the broker's disk with each way to flush; root only, 20 minutes
	$(BIN)/python -m compat_tests.crash.power_cuts --cuts 100

soak-eos: test-deps  ## 100 000 records copied exactly once over twenty kills of the broker, zombies and all; then by a group; then in transactions of version 1
	$(BIN)/python -m compat_tests.eos.soak
	$(BIN)/python -m compat_tests.eos.soak --groups --records 30000 --kills 10
	$(BIN)/python -m compat_tests.eos.soak --transaction-version 1 --records 30000 --kills 10

soak-eos-cluster: test-deps  ## the same copied in a cluster of three whose leaders and coordinators are killed
	$(BIN)/python -m compat_tests.eos.soak --cluster --records 40000 --kills 12

soak-cluster: test-deps  ## three brokers on ZooKeeper under twenty storms of faults of ten minutes each: 4 hours; SOAK='--seeds 2 --minutes 1'
	$(BIN)/python -m compat_tests.faults.soak $(SOAK)

soak-share: test-deps  ## share groups while brokers are killed, their histories judged: one broker, three on ZooKeeper, three with members of other clients: 9 minutes
	$(BIN)/python -m compat_tests.faults.share_groups.storm --kills 20
	$(BIN)/python -m compat_tests.faults.share_groups.storm --kills 12 --brokers 3
	$(BIN)/python -m compat_tests.faults.share_groups.storm --kills 6 --brokers 3 --mixed

soak-testing: $(VENV)/.test-stamp  ## five hundred brokers of kpybroker.testing started and ended in every way, and nothing may be left: 3 minutes
	$(BIN)/python -m compat_tests.testing.soak --brokers 500

soak-metrics: $(VENV)/.test-stamp  ## a broker under load with /metrics scraped every second, and its memory must stay flat: 1 hour; SOAK='--minutes 5'
	$(BIN)/python -m compat_tests.metrics.soak $(SOAK)

soak-hours: test-deps  ## clients of every kind, compaction, retention, restarts, a console and a scraper; memory must stay flat: 8 hours; SOAK='--hours 0.2 --lives 3'
	$(BIN)/python -m compat_tests.crash.hours.run $(SOAK)

soak-schemas: test-deps  ## ten thousand hostile schemas of the three types next to a client that registers and reads: 10 minutes; SOAK='--texts 500'
	$(BIN)/python -m compat_tests.registry.hostile.soak $(SOAK)

simulate: $(VENV)/.test-stamp  ## clusters on simulated time, a seed each: SEEDS=1000, or SEED=17 for one of them, twice and closely
	$(BIN)/python -m tests.simulation.run $(if $(SEED),--seed $(SEED) --shrink,--seeds $(or $(SEEDS),100)) $(SIMULATE)

mutants: test-deps  ## brokers with one thing wrong each, and whether the storm finds it: up to four minutes each; MUTANTS='names'
	$(BIN)/python -m compat_tests.faults.mutate $(MUTANTS)

replication-matrix: test-deps  ## Kafka's own matrix of clean and hard deaths of leader, controller and follower: 6 minutes
	$(PYTEST) compat_tests/cluster/test_matrix.py --replication-matrix

compat-secure: test-deps  ## the cluster tests with SASL_SSL, SCRAM and ACLs on two kpybroker and one Kafka, the whole matrix
	$(PYTEST) compat_tests/cluster --security=sasl_ssl --replication-matrix --ignore=compat_tests/cluster/test_secured.py

suites: test-deps  ## all tests of franz-go, a Go client, against kpybroker; SUITES='--new-groups' with KIP-848, '--broker kafka'; needs Go
	$(BIN)/python -m compat_tests.suites.go $(SUITES)

exchange: test-deps  ## kpybroker and real Kafka take turns on one data directory and one ZooKeeper, eight turns each way
	$(BIN)/python -m compat_tests.exchange.run

demo demo-activity: $(VENV)/.test-stamp  ## a real log through a broker and a Spark job: LOG=path for another file or folder, LOG=shop for a made-up one
	$(BIN)/python -m compat_tests.deps jars
	@mkdir -p build
	$(BIN)/python -m kpybroker.pipelines demo activity --jars .cache/jvm/spark-4.0.0 --picture build/demo-activity.svg $(if $(filter shop,$(LOG)),--shop,$(if $(LOG),--log "$(LOG)"))

demo-operations: $(VENV)/.test-stamp  ## metrics of this machine and of a broker under load, and what a Spark job finds in them
	$(BIN)/python -m compat_tests.deps jars
	@mkdir -p build
	$(BIN)/python -m kpybroker.pipelines demo operations --jars .cache/jvm/spark-4.0.0 --picture build/demo-operations.svg

demo-ledger: $(VENV)/.test-stamp  ## transfers between accounts, some aborted, their writers killed: balances, and a replay
	$(BIN)/python -m compat_tests.deps jars
	@mkdir -p build
	$(BIN)/python -m kpybroker.pipelines demo ledger --jars .cache/jvm/spark-4.0.0 --picture build/demo-ledger.svg

demo-changes: $(VENV)/.test-stamp  ## PostgreSQL through Debezium to tables that equal it after each batch, compared row by row
	$(BIN)/python -m compat_tests.deps jars postgresql debezium
	@mkdir -p build
	$(BIN)/python -m kpybroker.pipelines demo changes --jars .cache/jvm/spark-4.0.0 \
		--connect-jars .cache/jvm/connect-3.9.1,.cache/jvm/debezium-3.5.0 --picture build/demo-changes.svg

demo-logs: $(VENV)/.test-stamp  ## logs of two brokers and three services, one of which fails a while: requests, and bursts of errors
	$(BIN)/python -m compat_tests.deps jars
	@mkdir -p build
	$(BIN)/python -m kpybroker.pipelines demo logs --jars .cache/jvm/spark-4.0.0 --picture build/demo-logs.svg

demo-suggestion: $(VENV)/.test-stamp  ## purchases: what is bought together, and what each user may want, by a service; how good it is
	$(BIN)/python -m compat_tests.deps jars
	@mkdir -p build
	$(BIN)/python -m kpybroker.pipelines demo suggestion --jars .cache/jvm/spark-4.0.0 --picture build/demo-suggestion.svg

demo-warehouse: $(VENV)/.test-stamp  ## orders into Parquet and PostgreSQL by hour, with a kill, late lines, a replay and compaction
	$(BIN)/python -m compat_tests.deps jars postgresql
	@mkdir -p build
	$(BIN)/python -m kpybroker.pipelines demo warehouse --jars .cache/jvm/spark-4.0.0 --picture build/demo-warehouse.svg

demos: demo-activity demo-operations demo-ledger demo-logs demo-changes demo-suggestion demo-warehouse  ## every pipeline on Spark, one after the other

docs: $(VENV)/.test-stamp  ## the site, into build/docs; a warning or a broken link fails it
	$(BIN)/python -m compat_tests.deps graphviz
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs build/docs
	@echo "docs: open build/docs/index.html"


specs: $(VENV)/.test-stamp  ## write kpybroker/wire/messages from protocol_specs
	$(BIN)/python -m protocol_specs.generate

clean:
	rm -rf $(VENV) .cache
