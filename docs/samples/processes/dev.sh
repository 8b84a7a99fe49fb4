kpybroker dev --brokers 2 --processes
