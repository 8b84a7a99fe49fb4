kpybroker dev --ephemeral > broker.log 2>&1 &
until grep -q "kpybroker ready at" broker.log; do sleep 0.1; done
