"""What a JVM writes to its standard error, which a shell stands in for."""

from __future__ import annotations

import io
import subprocess
import sys
import threading

import pytest

from kpybroker.pipelines.runtime.messages import KEPT_LINES_MAX, Messages

DEADLINE_S = 60.0
LATER = """
echo 'WARNING: early' >&2
echo 'downloading https://example.org/a.jar' >&2
read line
echo '24/03/05 08:00:00 ERROR Executor: Exception in task 0' >&2
echo 'java.lang.IllegalStateException: no' >&2
printf '\\tat x.Y\\n\\377\\n' >&2
echo '24/03/05 08:00:00 WARN Executor: hm' >&2
"""


class Seen(io.StringIO):
    """Where some lines are shown; `written` is set by the first."""

    def __init__(self) -> None:
        super().__init__()
        self.written = threading.Event()

    def write(self, text: str) -> int:
        done = super().write(text)
        self.written.set()
        return done


def test_one_line_of_an_error_is_shown_and_the_stack_is_kept() -> None:
    out = Seen()
    messages = Messages(out)
    with messages.of_a_start():
        jvm = subprocess.Popen(["sh", "-c", LATER], stdin=subprocess.PIPE)
        assert out.written.wait(DEADLINE_S)
    jvm.communicate(b"go\n", timeout=DEADLINE_S)
    messages.wait(DEADLINE_S)
    assert out.getvalue().splitlines() == [
        "downloading https://example.org/a.jar",
        "24/03/05 08:00:00 ERROR Executor: Exception in task 0",
    ]
    kept = messages.text().splitlines()
    assert kept[0] == "WARNING: early"
    assert kept[3:] == [
        "java.lang.IllegalStateException: no",
        "\tat x.Y",
        "\N{REPLACEMENT CHARACTER}",
        "24/03/05 08:00:00 WARN Executor: hm",
    ]


def test_afterwards_this_process_writes_to_its_own_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    """Also where the start fails."""
    messages = Messages(io.StringIO())

    def start() -> None:
        with messages.of_a_start():
            subprocess.run(["sh", "-c", "echo why >&2; exit 1"], check=True)

    with pytest.raises(subprocess.CalledProcessError):
        start()
    messages.wait(DEADLINE_S)
    assert messages.text() == "why"
    print("here", file=sys.stderr)
    subprocess.run(["sh", "-c", "echo and here >&2"], check=True)
    assert capfd.readouterr().err == "here\nand here\n"


def test_only_the_last_lines_are_kept() -> None:
    messages = Messages(io.StringIO())
    with messages.of_a_start():
        subprocess.run(["sh", "-c", f"seq {KEPT_LINES_MAX + 5} >&2"], check=True)
    messages.wait(DEADLINE_S)
    assert messages.text().splitlines()[0] == "6"
