"""Texts that strangers could send, of the three types: each from a number, so that one that fails can be made again.

A few are shapes that a parser may choke on, in sizes by chance; the others are such shapes, and good texts, with bytes
changed. `table(count)` goes through all shapes in turn.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

Chance = random.Random


class Hostile(NamedTuple):
    """`name` says which shape it is."""

    kind: str
    text: str
    name: str


def _union(chance: Chance, key: str = "oneOf") -> str:
    count = chance.choice((10, 40, 100, 150))
    union = {key: [{"$ref": f"#/definitions/K{number}"} for number in range(count)]}
    names = [f"K{number}" if chance.random() < 0.5 else "K" for number in range(count)]
    definitions = {
        f"K{number}": {"type": "object", "properties": {"t": {"const": name}, "u": union}}
        for number, name in enumerate(names)
    }
    return json.dumps({"definitions": definitions, **union})


def _entangled(chance: Chance) -> str:
    count = chance.choice((5, 20, 60))
    definitions = {
        f"K{number}": {
            chance.choice(("anyOf", "allOf", "oneOf")): [
                {"properties": {f"p{at}": {"$ref": f"#/definitions/K{chance.randrange(count)}"}}} for at in range(5)
            ]
        }
        for number in range(count)
    }
    return json.dumps({"definitions": definitions, "$ref": "#/definitions/K0"})


def _patterns(chance: Chance) -> str:
    pattern = chance.choice(("a*a*a*b", "(a+)+$", "(a|a)*b", "(.*){50}x", "^(?!(a*)*b)", "[" * 900, "(a{0,1000}){9}"))
    names: dict[str, Any] = {"a" * chance.randrange(200, 260) + str(number): {} for number in range(1000)}
    return json.dumps({"patternProperties": {pattern: {}}, "properties": names, "additionalProperties": False})


def _references(chance: Chance) -> str:
    target = chance.choice(
        ("#", "#/definitions/a", "#/x/" + "y/" * 2000, "#" * 500, "http://x/y", "\\u0000", "%", "//[")
    )
    parts = [{"$ref": target} for _ in range(chance.choice((1, 500)))]
    draft = chance.choice(
        ("http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema", "x")
    )
    return json.dumps({"$schema": draft, "definitions": {"a": {"$ref": target}}, "allOf": parts})


def _identifiers(chance: Chance) -> str:
    names = [chance.choice(("a", "/a", "http://h/", "#x", "..", "\\ud800", "%zz", "http://[")) for _ in range(200)]
    return json.dumps({"allOf": [{"$id": name, "$anchor": name, "items": {"$ref": name}} for name in names]})


def _wide(chance: Chance) -> str:
    value = chance.choice(
        ({"enum": [[number] for number in range(900)]}, {"enum": list(range(20_000))}, {"const": [0] * 50_000})
    )
    return json.dumps({"properties": {str(number): value for number in range(chance.choice((1, 20)))}})


def _nested_json(chance: Chance) -> str:
    depth = chance.choice((60, 190, 5000))
    key = chance.choice(('{"not":', '{"items":', '{"allOf":[', '{"properties":{"a":', "["))
    return key * depth + "{}" + "".join({"{": "}", "[": "]"}[one] for one in reversed(key) if one in "{[") * depth


def _numbers(chance: Chance) -> str:
    number = chance.choice(("9" * 4000, "9" * 5000, "1e400", "-1e-400", "1" + "0" * 300, "NaN", "0." + "1" * 5000))
    return f'{{"type":"number","multipleOf":{number},"maximum":{number},"enum":[{number}]}}'


def _records(chance: Chance) -> str:
    count = chance.choice((10, 60, 150))
    names = [f"R{number}" for number in range(count)]
    first: dict[str, Any] = {}
    record = first
    for number, name in enumerate(names):  # each is defined inside of the one before
        fields: list[Any] = [{"name": f"u{at}", "type": ["null", *names[: number + 1]]} for at in range(3)]
        record |= {"type": "record", "name": name, "fields": fields}
        record["fields"].append({"name": "next", "type": (record := {}) if number + 1 < count else "int"})
    return json.dumps(first)


def _avro_wide(chance: Chance) -> str:
    count = chance.choice((500, 5000))
    fields = [
        {"name": f"f{at}", "type": "int", "default": at, "aliases": [f"a{at}" for _ in range(20)]}
        for at in range(count)
    ]
    return json.dumps({"type": "record", "name": "W", "fields": fields})


def _avro_defaults(chance: Chance) -> str:
    value: Any = None
    for at in range(chance.choice((10, 80))):
        value = {"left": value, "right": value} if at < 12 and chance.random() < 0.7 else {"left": value}
    tree = ["null", "T"]
    fields = [{"name": "left", "type": tree, "default": None}, {"name": "right", "type": tree, "default": None}]
    outer = {"name": "d", "type": {"type": "record", "name": "T", "fields": fields}, "default": value}
    return json.dumps({"type": "record", "name": "O", "fields": [outer]})


def _avro_nested(chance: Chance) -> str:
    depth = chance.choice((90, 190, 20_000))
    return '{"type":"array","items":' * depth + '"int"' + "}" * depth


def _forward(chance: Chance) -> str:
    """Types that are used before the place where they are defined, each in the one before."""
    count = chance.choice((10, 150, 400))
    fields: list[Any] = [{"name": "f0", "type": "R1"}]
    for number in range(count, 0, -1):
        following = ["null", f"R{number + 1}"] if number < count else "int"
        inner = [{"name": f"g{at}", "type": following} for at in range(chance.choice((1, 20)))]
        fields.append({"name": f"f{number}", "type": {"type": "record", "name": f"R{number}", "fields": inner}})
    return json.dumps({"type": "record", "name": "O", "fields": fields})


def _comments(chance: Chance) -> str:
    piece = chance.choice(("/*a", "//\n", "/*", '"/*', "/**/", "\n", "'", '"\\', "/*" + "*" * 99 + '"'))
    return piece * chance.choice((1000, 27_000)) + 'syntax = "proto3"; message A {}'


def _options(chance: Chance) -> str:
    depth = chance.choice((50, 1000, 4000))
    quote = chance.choice(("", '// "\n', "/* ' */"))
    return f'{quote}syntax = "proto3"; option (a) = {{ {"a { " * depth}{"}" * depth} }};'


def _messages(chance: Chance) -> str:
    depth = chance.choice((30, 190, 3000))
    return 'syntax = "proto3";' + "message A { " * depth + "}" * depth


def _fields(chance: Chance) -> str:
    count = chance.choice((1000, 8000))
    kind = chance.choice(("int32", "A", "map<string, A>", "oneof x { int32", "group G"))
    fields = "\n".join(f"{kind} f{at} = {at + 1};{'}' if 'oneof' in kind else ''}" for at in range(count))
    return f'syntax = "proto3"; message A {{ {fields} }}'


def _imports(chance: Chance) -> str:
    name = chance.choice(("schema.proto", "google/protobuf/any.proto", "/etc/passwd", "../x", "a" * 5000, "\\0"))
    return f'syntax = "proto3"; {f"""import "{name}"; """ * chance.choice((1, 500))} message A {{}}'


def _names(chance: Chance) -> str:
    """Long names, looked for in each of many scopes around."""
    depth = chance.choice((20, 150))
    parts = ".".join("a" for _ in range(chance.choice((1, 60, 3000))))
    fields = "".join(f"{parts} f{at} = {at + 1};" for at in range(chance.choice((10, 2000))))
    return f'syntax = "proto3"; package {parts}; {"message a { " * depth}{fields}{"}" * depth}'


def _maps(chance: Chance) -> str:
    depth = chance.choice((2, 50, 2000))
    return f'syntax = "proto3"; message A {{ {"map<string, " * depth}A{">" * depth} m = 1; }}'


def _values(chance: Chance) -> str:
    """Options in parts, whose values are objects and lists of each other."""
    path = ".".join("x" for _ in range(chance.choice((1, 100, 2000))))
    value = chance.choice(
        ("[" * 150 + "]" * 150, "{" + "a: 1 " * 3000 + "}", '"a" ' * 2000, "-" * 500 + "1", "0x" + "f" * 5000)
    )
    options = f"option (o).{path} = {value};" * chance.choice((1, 50))
    return f'syntax = "proto2"; {options} message A {{ optional int32 a = 1 [(p).{path} = {value}]; }}'


def _descriptor(chance: Chance) -> str:
    return base64.b64encode(
        b'\n\x01a"' + bytes(chance.randrange(256) for _ in range(chance.choice((10, 3000))))
    ).decode()


SHAPES: dict[Callable[[Chance], str], str] = {
    **dict.fromkeys(
        (_union, _entangled, _patterns, _references, _identifiers, _wide, _nested_json, _numbers),
        "JSON",
    ),
    **dict.fromkeys((_records, _avro_wide, _avro_defaults, _avro_nested, _forward), "AVRO"),
    **dict.fromkeys(
        (_comments, _options, _messages, _fields, _imports, _names, _maps, _values, _descriptor), "PROTOBUF"
    ),
}
GOOD = {
    "JSON": '{"type":"object","properties":{"a":{"type":"string","maxLength":9},"b":{"$ref":"#/properties/a"}}}',
    "AVRO": '{"type":"record","name":"A","fields":[{"name":"a","type":["null","int"],"default":null}]}',
    "PROTOBUF": 'syntax = "proto3";\nmessage A { oneof x { int32 a = 1; string b = 2 [deprecated = true]; } }',
}
MARKS = "{}[]()<>\"'\\/*,:;=#%$^\0\n\u0100\U0001f600 0-9.e"


def _changed(text: str, chance: Chance) -> str:
    made = list(text[:20_000])
    for _ in range(chance.choice((1, 5, 50))):
        at = chance.randrange(len(made) or 1)
        made[at : at + chance.choice((0, 1, 20))] = chance.choice(MARKS) * chance.choice((1, 1, 3, 1000))
    return "".join(made)


def hostile(number: int) -> Hostile:
    """The same for the same number."""
    chance = random.Random(number)
    shape, kind = list(SHAPES.items())[number % len(SHAPES)]
    way = number // len(SHAPES) % 3
    if way == 0:
        return Hostile(kind, shape(chance), shape.__name__)
    text = GOOD[kind] if way == 1 else shape(chance)
    return Hostile(kind, _changed(text, chance), f"changed{shape.__name__ if way == 2 else '_good'}")


def table(count: int, first: int = 0) -> Iterator[Hostile]:
    """So many, one shape after the other."""
    return (hostile(number) for number in range(first, first + count))
