# what each broker leads, and what would change; then do it
kpybroker cluster balance -b 127.0.0.1:9092 --seconds 60
kpybroker cluster balance -b 127.0.0.1:9092 --seconds 60 --copy --execute
