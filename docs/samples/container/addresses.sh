kcat -L -b 127.0.0.1:9092 | grep "broker 0 at"
