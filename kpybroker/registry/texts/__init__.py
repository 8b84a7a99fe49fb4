"""Strangers' texts: whatever parses, prints or compares one runs in a worker process with limits of time and memory.

Rules are pure: where one needs to know something of a text, `rules.library` looks it up among the answers of `known`,
and raises `Unanswered` where it is not there. The request then waits, without a lock or a thread, until `desk` has the
answer of a worker, and is planned again.

- `questions`: what can be asked of a text, and its answers. Plain values, which are also sent to the workers.
- `known`: answers by the hash of their question.
- `desk`: which question goes to which worker, and when.
- `channels`: starts the workers, and again after their end.
- `answers`, `worker`, `template`: what runs in the other processes. The registry's own never imports a parser.
"""
