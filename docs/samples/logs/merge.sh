kpybroker log merge-state-changes --logs-regex 'logs/state-change.log.*' --topic orders --partitions 0,1
