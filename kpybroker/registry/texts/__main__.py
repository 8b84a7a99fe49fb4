"""What runs in the other processes: the template, whose orders come by a descriptor, or else one worker."""

from __future__ import annotations

import os
import signal
import sys

from kpybroker.registry.texts import template, worker

for name in ("SIGINT", "SIGTERM", "SIGHUP"):  # they are for the registry, whose end is ours
    if (number := getattr(signal, name, None)) is not None:
        signal.signal(number, signal.SIG_IGN)
if len(sys.argv) > 1:
    template.main(int(sys.argv[1]))
else:
    worker.serve(os.fdopen(0, "rb"), os.fdopen(os.dup(1), "wb"))
