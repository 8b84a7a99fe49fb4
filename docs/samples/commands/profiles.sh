# from a client's file, or key by key
kpybroker profile set production --from client.properties bootstrap.servers=broker.example.com:9093
kpybroker profile set local bootstrap.servers=127.0.0.1:9092

# for one command, and from now on
kpybroker topic list --profile local
kpybroker profile use local
kpybroker profile list
kpybroker profile show production
