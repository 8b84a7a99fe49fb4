"""One worker at a time, and a look at the brokers. `pip install kazoo` first."""

from kazoo.client import KazooClient

client = KazooClient("127.0.0.1:2181")
client.start()
try:
    with client.Lock("/my-service/lock", "worker-1"):
        print("brokers:", client.get_children("/brokers/ids"))
finally:
    client.stop()
    client.close()
