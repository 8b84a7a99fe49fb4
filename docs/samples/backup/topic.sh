# one topic as text, while the broker runs: key, tab, value
kcat -C -b 127.0.0.1:9092 -t greetings -o beginning -e -q -f '%k\t%s\n' > greetings.tsv
# and back, into another topic
kcat -P -b 127.0.0.1:9092 -t greetings-restored -K '\t' -l greetings.tsv
