# copy what there is, and make topics that the target lacks
kpybroker mirror 'shop.*' -b old.example.com:9092 --to new.example.com:9092 --create --exit
# stop the producers, copy the rest, and look at the lag of the copy: it is 0
kpybroker mirror 'shop.*' -b old.example.com:9092 --to new.example.com:9092 --exit
kpybroker group list 'kpybroker-mirror-*' --lag -b old.example.com:9092
