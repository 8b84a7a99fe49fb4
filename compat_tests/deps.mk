# What the tests with other people's clients need besides the `test` extra; the Makefile includes this file.
PYTHON_FOR_DEPS ?= .venv/bin/python

.PHONY: test-deps compat compat-kafka

test-deps:
	@$(PYTHON_FOR_DEPS) compat_tests/deps.py

compat: test-deps
	.venv/bin/python -m pytest compat_tests --broker=kpybroker

compat-kafka: test-deps
	.venv/bin/python -m pytest compat_tests --broker=kafka
