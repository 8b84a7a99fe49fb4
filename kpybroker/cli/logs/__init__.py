"""The log of a broker's process: its line formats, its streams and their files. The way in is `set_up`.

Never here: what is logged, the levels that change at run time (`broker.cluster.loggers`), and the merge of
state-change logs (`dump`).
"""
