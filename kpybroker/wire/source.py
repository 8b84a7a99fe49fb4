"""Builds the source of a compiled codec: indentation, unique names, and the objects its globals name."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Source:
    """Lines of a function under construction and the objects its names refer to."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self.namespace = dict(namespace)
        self._lines: list[str] = []
        self._depth = 1
        self._counter = 0

    def line(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        self.line(header)
        self._depth += 1
        yield
        self._depth -= 1

    def name(self, stem: str) -> str:
        """A local name not used before."""
        self._counter += 1
        return f"{stem}{self._counter}"

    def bind(self, stem: str, value: Any) -> str:
        """A global of the compiled function that stands for `value`; equal values share one."""
        for name, known in self.namespace.items():
            if known is value:
                return name
        name = self.name(stem)
        self.namespace[name] = value
        return name

    def packer(self, formats: str) -> str:
        return self.bind_made("pack_" + _identifier(formats), _struct_method(formats, "pack"))

    def unpacker(self, formats: str) -> str:
        return self.bind_made("unpack_" + _identifier(formats), lambda: struct.Struct(">" + formats).unpack_from)

    def bind_made(self, name: str, make: Callable[[], Any]) -> str:
        """A global of that name, made on its first use."""
        if name not in self.namespace:
            self.namespace[name] = make()
        return name

    def compile(self, signature: str, label: str) -> Any:
        """The finished function. `label` appears in tracebacks in the place of a file name."""
        code = "\n".join([f"def compiled({signature}):", *(self._lines or ["    pass"]), ""])
        exec(compile(code, f"<codec {label}>", "exec"), self.namespace)
        return self.namespace["compiled"]


def _struct_method(formats: str, method: str) -> Callable[[], Any]:
    return lambda: getattr(struct.Struct(">" + formats), method)


def _identifier(formats: str) -> str:
    return formats.replace("?", "t").replace("16s", "u")
