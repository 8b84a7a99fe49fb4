echo hello | kcat -P -b 127.0.0.1:9092 -t demo
kcat -C -b 127.0.0.1:9092 -t demo -e
