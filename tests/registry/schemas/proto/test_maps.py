"""Entries of maps become maps again."""

from __future__ import annotations

from kpybroker.registry.schemas.proto.maps import with_maps
from kpybroker.registry.schemas.proto.printer import printed
from kpybroker.registry.schemas.proto.reader import read

ENTRIES = """
message M {
  repeated .M.AEntry a = 1;
  repeated .M.Other o = 2;
  message AEntry {
    option map_entry = true;
    string key = 1;
    .M value = 2;
  }
  message Other {
    message N {
      repeated BEntry b = 1;
      message BEntry { option map_entry = true; int32 key = 1; bytes value = 2; }
    }
  }
}
enum E { A = 0; }
"""
MAPS = """
message M {
  map<string, .M> a = 1;
  repeated .M.Other o = 2;
  message Other { message N { map<int32, bytes> b = 1; } }
}
enum E { A = 0; }
"""


def test_entries_are_written_as_maps() -> None:
    syntax = 'syntax = "proto3";'
    assert printed(with_maps(read(syntax + ENTRIES))) == printed(read(syntax + MAPS))
    assert with_maps(read(syntax + MAPS)) == read(syntax + MAPS)
