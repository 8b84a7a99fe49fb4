kpybroker log dump --records ~/.local/share/kpybroker/demo-0
kpybroker log verify ~/.local/share/kpybroker/demo-0
