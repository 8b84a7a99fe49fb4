"""Run a pipeline by spark-submit, whose arguments after this file are those of `python -m kpybroker.pipelines`."""

import sys

from kpybroker.pipelines.__main__ import main

sys.exit(main(sys.argv[1:]))
