"""Running a pipeline as a user does, by its command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from kpybroker.pipelines.errors import PipelineError

SHORT_LIVED_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""JVM options for a short run, most of which is the compilation of Spark itself."""


def command(name: str, bootstrap: str, jars: str | None, *options: str) -> list[str]:
    """The command that runs the pipeline `name`."""
    run = [sys.executable, "-m", "kpybroker.pipelines", "run", name, "--bootstrap-servers", bootstrap, *options]
    return [*run, "--jars", jars] if jars else run


def run_spark(command: list[str], place: Path) -> None:
    """Run the job and show its output; the messages of the JVM are shown only if it fails."""
    noise = place / "spark.log"
    with noise.open("wb") as errors:
        java_options = f"{SHORT_LIVED_JVM} {os.environ.get('JDK_JAVA_OPTIONS', '')}".strip()
        env = {**os.environ, "JDK_JAVA_OPTIONS": java_options}
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=env)
        try:
            assert process.stdout is not None
            for line in process.stdout:
                print(f"    {line.rstrip()}", flush=True)
            code = process.wait()
        except BaseException:
            process.terminate()
            process.wait()
            raise
    if code != 0:
        lines = noise.read_text(errors="replace").strip().splitlines()
        print("\n".join(lines[-15:]), file=sys.stderr)
        raise PipelineError(f"The Spark job ended with exit code {code}.", "See its last messages above.")
