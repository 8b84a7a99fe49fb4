kpybroker dev --ephemeral > broker.log 2>&1 &
kpybroker ping --wait 30 127.0.0.1:9092
