kpybroker server server.properties --processes 4
