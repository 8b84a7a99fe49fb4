python3 -m venv /opt/kpybroker
/opt/kpybroker/bin/pip install "${KPYBROKER:-../..}"  # the checkout; or a wheel
install -D -m 644 server.properties /etc/kpybroker/server.properties
install -m 644 kpybroker.service /etc/systemd/system/kpybroker.service
systemctl daemon-reload
systemctl enable --now kpybroker
