mkdir -p certificates && cd certificates
new="-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"

# an authority
openssl req -x509 $new -days 3650 -subj "/CN=our authority" -keyout ca.key -out ca.pem

# a broker: clients compare the names in its certificate with the address that they connect to
openssl req $new -subj "/CN=broker-0" -keyout broker.key -out broker.csr
printf "subjectAltName=DNS:localhost,IP:127.0.0.1" > names
openssl x509 -req -in broker.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 365 -extfile names -out broker.crt
cat broker.key broker.crt > broker.pem

# a client
openssl req $new -subj "/CN=alice" -keyout alice.key -out alice.csr
openssl x509 -req -in alice.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 365 -out alice.crt
cat alice.key alice.crt > alice.pem
