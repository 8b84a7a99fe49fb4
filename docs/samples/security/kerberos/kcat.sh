kcat -b localhost:9092 -L \
  -X security.protocol=SASL_PLAINTEXT -X sasl.mechanism=GSSAPI -X sasl.kerberos.service.name=kafka \
  -X sasl.kerberos.keytab=/etc/kafka/alice.keytab -X sasl.kerberos.principal=alice@EXAMPLE.COM
