# one record a line
echo hello | kpybroker topic produce orders

# with keys, a header, and compression
printf 'k1:first\nk2:second\n' | kpybroker topic produce orders -K: -H source=shell -z zstd

# from a table, and show where each record went
printf 'k3\tthird\n' | kpybroker topic produce orders -f '%k\t%v' -o '%k is at %p:%o\n'
