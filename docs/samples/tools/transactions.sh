kpybroker transaction list --format wide
kpybroker transaction hanging
