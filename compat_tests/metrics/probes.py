"""Requests for Jolokia, right and wrong, with the same response of both; and those with two responses on purpose."""

from __future__ import annotations

from typing import Any, Final

from compat_tests.metrics.work import NAME

SIZE: Final = f"kafka.log:type=Log,name=Size,topic={NAME},partition=0"
IN_LIST: Final = f"kafka.log/name=Size,partition=0,topic={NAME},type=Log"
COUNT: Final = "kafka.server:name=PartitionCount,type=ReplicaManager"
ILLEGAL: Final = "java.lang.IllegalArgumentException"

GETS: Final = (
    *("/read", "/search", "/read/kafka.server:type=Nothing", "/read/kafka.nothing:*", "/read/:type=Log,*"),
    *(f"/read/{SIZE}", f"/read/{SIZE}/X", f"/read/{SIZE}/Value", f"/read/{SIZE}/Value,X", f"/read/{SIZE}/Value/inner"),
    f"/read/kafka.log:type=Log,name=Size,topic={NAME},*/X",
    f"/read/kafka.log:type=Log,name=Size,topic={NAME},*/Value,X",
    f"/read/kafka.log:name=Size,topic={NAME},type=Log,partition=?/Value?canonicalNaming=false",
    *(f"/read/{wrong}" for wrong in ("kafka/X", "kafka:", "kafka:a", "kafka:a=b,a=c", "kafka:a=b=c", "kafka:*b=c")),
    *("/search/bad", "/search/kafka.nothing:*", f"/search/{COUNT}"),
    f"/search/kafka.log:type=Log,name=Size,topic={NAME},*",
    f"/search/kafka.log:type=Log,name=Size,topic={NAME},*?canonicalNaming=false",
    *("/list/kafka.nothing", "/list/kafka.log/type=Nothing", f"/list/{IN_LIST}/attr", f"/list/{IN_LIST}/attr/Value"),
    *(f"/list/{IN_LIST}/desc", f"/list/{IN_LIST}/x", f"/list/{IN_LIST}/attr/Nope"),
    f"/list/{SIZE.replace(':', '/')}/attr",
    *("/read/kafka.server:type=x!/y/A!/b", "/read/kafka.server:type=a!!b", "/read/kafka.server:type=a!"),
    *(f"/?p=/read/{COUNT}/Value", f"/READ/{COUNT}/Value", "/dance/x:a=b", "/notification/x"),
)
POSTS: Final = (
    *(
        "7",
        "null",
        "{}",
        "[]",
        '{"type":"read"}',
        '{"type":"search"}',
        '{"type":"dance"}',
        '{"type":"read","mbean":"bad"}',
    ),
    *(f'{{"type":"{kind}","mbean":"{COUNT}","attribute":"Value"}}' for kind in ("read", "READ")),
    *(f'{{"type":"read","mbean":"{COUNT}","attribute":{names}}}' for names in ('["Value"]', "[]", '["Value","X"]')),
    f'[{{"type":"read","mbean":"{COUNT}","attribute":"Value"}},{{"type":"read","mbean":"kafka.server:type=Nothing"}}]',
    f'{{"type":"list","path":"{IN_LIST}/attr"}}',
    f'{{"type":"search","mbean":"kafka.log:type=Log,name=Size,topic={NAME},*"}}',
    f'{{"type":"read","mbean":"kafka.log:type=Log,name=Size,topic={NAME},*","config":{{"canonicalNaming":false}}}}',
)

_REFUSED: Final[dict[str, Any]] = {"error_type": "java.lang.SecurityException", "status": 403}
DIFFERENT: Final[tuple[tuple[str, Any, Any], ...]] = (
    (f"/exec/{COUNT}/objectName", {"status": 200}, _REFUSED),
    (f"/write/{COUNT}/Value/1", {"status": 404, "error_type": "javax.management.AttributeNotFoundException"}, _REFUSED),
    # Jolokia refuses an array with one bad request as a whole; here each has its own response
    (
        f'[{{"type":"read","mbean":"{COUNT}","attribute":"Value"}},7]',
        {"status": 400, "error_type": ILLEGAL},
        [200, 400],
    ),
    ("{", {"status": 400, "error_type": ILLEGAL}, {"status": 400, "error_type": ILLEGAL}),
    ('{"type":"read","mbean":7}', {"status": 500}, {"status": 400, "error_type": ILLEGAL}),
)
