# the password is read from standard input, and only its hash is written
echo "$ALICE_PASSWORD" | kpybroker registry --users-file users --add-user alice
