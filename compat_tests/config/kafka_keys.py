"""The keys that Kafka 3.9.1 and 4.3.1 define, asked through ConfigKeys.java.

python -m compat_tests.config.kafka_keys      # writes them to tests/config/keys
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

from compat_tests.support.tools import program_command
from tests.config.keys.kafka_keys import FILES

JAVA_SECONDS_MAX: Final = 120
VERSIONS: Final = {"3.9.1": "3.9.1", "4.3.1": "4.x"}
"""Release -> what `support.tools` calls its jars."""


def defined(release: str) -> str:
    """A line for each key; see ConfigKeys.java."""
    command = program_command(VERSIONS[release], Path(__file__).with_name("ConfigKeys.java"))
    done = subprocess.run(command, capture_output=True, text=True, timeout=JAVA_SECONDS_MAX, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


if __name__ == "__main__":
    for name, file in FILES.items():
        file.write_text(defined(name))
