# copy the directory of a broker that was stopped in order, then check the copy
cp -a ~/.local/share/kpybroker /backup/kpybroker
kpybroker log verify /backup/kpybroker
