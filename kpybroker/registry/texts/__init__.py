"""Strangers' texts: whatever parses, prints or compares one runs in a worker process with limits of time and memory.

Rules are pure: where one needs to know something of a text, `rules.library` looks it up among the replies of `known`,
and raises `Unknown` where it is not there. The request then waits, without a lock or a thread, until `desk` has the
reply of a worker, and is planned again.

- `questions`: what can be asked of a text, and its replies. Plain values, which are also sent to the workers.
- `known`: replies by the hash of their question.
- `desk`: which question goes to which worker, and when.
- `channels`: starts the workers, and again after their end.
- `__main__`, `template`, `worker`, `replies`: what runs in the other processes.
  The registry itself imports no parser.
"""
