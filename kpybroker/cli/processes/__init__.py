"""Several brokers as several processes of one machine: `server FILE --processes N`, `dev --brokers N --processes`.

`derive` makes the properties of each broker from those of one, `supervision` decides when a process is started, ended
and given up, `supervisor` does what it says, and `child` is the other end, in each broker's process. What never lives
here: a broker; the supervisor has none, so that it does not fail with one.
"""
