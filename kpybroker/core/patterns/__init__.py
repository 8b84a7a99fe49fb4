"""Patterns in the language of RE2/J: of topic names, which members of consumer groups subscribe with (KIP-848), and of
transactional ids, which ListTransactions filters by (KIP-1152).

`topics` is the way in: `compile_pattern`, `Pattern.matches`, `resolve`. Behind it `parser` makes a tree of `nodes` from
a pattern, with the verdicts and texts of RE2/J 1.8, which Kafka 4.3.1 uses; `classes` are sets of characters, of which
`scripts` and `folding` know more than Python; and `program` is an automaton without backtracking. Python's `re` never
receives a client's pattern. Why it is our own, and what it costs, is in docs/decisions/patterns.md.
"""
