"""Builds the source of a compiled codec: indentation, unique names, the objects its globals name, and its steps."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kpybroker.wire.yield_budget import SLICE_UNITS


class Source:
    """Lines of a function under construction and the objects its names refer to.

    With `in_steps` the function is a generator; see `step`.
    """

    def __init__(self, namespace: dict[str, Any], in_steps: bool) -> None:
        self.namespace = dict(namespace)
        self._in_steps = in_steps
        self._lines: list[str] = []
        self._depth = 1
        self._counter = 0
        if in_steps:
            self.line("steps = 0")
            self.line("if steps: yield")  # makes it a generator, whatever the schema

    def step(self) -> None:
        """Marks the end of an array element: with `in_steps`, the function yields after SLICE_UNITS of them."""
        if self._in_steps:
            self.line("steps += 1")
            with self.block(f"if steps == {SLICE_UNITS}:"):
                self.line("steps = 0")
                self.line("yield")

    def line(self, text: str) -> None:
        """Adds one line at the current indentation."""
        self._lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """Adds `header`, and indents the lines added within the `with` statement."""
        self.line(header)
        self._depth += 1
        yield
        self._depth -= 1

    def name(self, stem: str) -> str:
        """A local name not used before."""
        self._counter += 1
        return f"{stem}{self._counter}"

    def bind(self, stem: str, value: Any) -> str:
        """A global of the compiled function that refers to `value`; the same object keeps one name."""
        for name, known in self.namespace.items():
            if known is value:
                return name
        name = self.name(stem)
        self.namespace[name] = value
        return name

    def packer(self, formats: str) -> str:
        """A global that packs values of these `struct` formats, big endian."""
        return self.bind_made("pack_" + _identifier(formats), _struct_method(formats, "pack"))

    def unpacker(self, formats: str) -> str:
        """A global that unpacks values of these `struct` formats, big endian, from (buffer, position)."""
        return self.bind_made("unpack_" + _identifier(formats), lambda: struct.Struct(">" + formats).unpack_from)

    def bind_made(self, name: str, make: Callable[[], Any]) -> str:
        """A global of that name, made on its first use."""
        if name not in self.namespace:
            self.namespace[name] = make()
        return name

    def compile(self, signature: str, label: str) -> Any:
        """The finished function. Tracebacks show `label` in place of a file name."""
        code = "\n".join([f"def compiled({signature}):", *(self._lines or ["    pass"]), ""])
        exec(compile(code, f"<codec {label}>", "exec"), self.namespace)
        return self.namespace["compiled"]


def _struct_method(formats: str, method: str) -> Callable[[], Any]:
    return lambda: getattr(struct.Struct(">" + formats), method)


def _identifier(formats: str) -> str:
    return formats.replace("?", "t").replace("16s", "u")
