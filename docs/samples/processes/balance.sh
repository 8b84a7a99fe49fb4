# what each broker leads, and what would change; then do it
kpybroker cluster balance --seconds 60
kpybroker cluster balance --seconds 60 --copy --execute
