"""Bytes a second, held against what ``org.apache.kafka.common.metrics.stats.Rate`` of 3.9.1 measured."""

from __future__ import annotations

import pytest

from kpybroker.core.rate import Rate

# (record at, value, measure at, Kafka's rate): three windows of a second, with pauses that empty some of them
MEASURED = [
    (100287, 92, 100361, 44.35872709739634),
    (101185, 506, 101190, 205.99379951774026),
    (101644, 691, 101766, 519.9677289229528),
    (101787, 831, 101890, 814.4448713023434),
    (102437, 560, 102465, 1230.4866850321396),
    (102655, 978, 102670, 1535.0398657154847),
    (102987, 17, 103095, 1308.7606837606838),
    (103760, 808, 103916, 1235.3265362358777),
    (106777, 402, 106957, 184.40366972477062),
    (107404, 715, 107524, 406.62540953767746),
    (108413, 292, 108570, 504.47547440028643),
    (108799, 707, 108829, 1031.1890838206627),
    (109175, 543, 109344, 1035.8395013634592),
    (109777, 884, 109828, 1161.2586037364797),
    (110098, 357, 110239, 1126.5164644714037),
    (110937, 452, 110979, 1260.7170693686674),
    (113832, 595, 113957, 280.0),
    (114562, 712, 114599, 472.35272858691724),
    (114802, 912, 114861, 1093.6421882700838),
    (115561, 947, 115592, 1147.1014492753625),
    (116191, 251, 116298, 1385.6447688564476),
    (116624, 298, 116789, 1256.3408860331417),
    (116822, 697, 116966, 1407.7855775366943),
    (117584, 49, 117620, 1177.6663146779304),
    (120178, 30, 120333, 289.5659207333513),
]


def test_rates_are_kafkas() -> None:
    rate = Rate(3, 1000)
    for at, value, measured_at, expected in MEASURED:
        rate.record(value, at)
        assert rate.measure(measured_at) == pytest.approx(expected)


def test_nothing_recorded_is_nothing() -> None:
    assert Rate(11, 1000).measure(5000) == 0


def test_the_first_bytes_are_spread_over_all_windows_but_one() -> None:
    rate = Rate(11, 1000)
    rate.record(1000, 0)
    assert rate.measure(0) == 100.0
    assert rate.measure(500) == pytest.approx(95.23809523809524)
    assert rate.measure(10_999) == pytest.approx(90.91735612328392)
    assert rate.measure(11_000) == 0
