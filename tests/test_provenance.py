"""What is stamped on every result."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from pathlib import Path

import pytest

import popmodel
from popmodel.base.errors import FileError
from popmodel.base.provenance import HEAD_BYTES, collect
from popmodel.base.values import plain


def test_a_stamp_states_what_was_run_on_what(tmp_path: Path) -> None:
    trace = tmp_path / "my trace.prv"
    content = b"#Paraver" + bytes(range(256)) * 1024
    trace.write_bytes(content)
    now = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)

    stamp = plain(collect(["metrics", str(trace)], [trace], now=now))

    assert stamp["popmodel"] == popmodel.__version__
    assert stamp["command"] == f"popmodel metrics '{trace}'"
    assert stamp["time"] == "2031-05-06T07:08:09Z"
    assert stamp["host"]
    assert stamp["inputs"] == [
        {
            "path": str(trace),
            "size": len(content),
            "head_sha256": hashlib.sha256(content[:HEAD_BYTES]).hexdigest(),
        }
    ]


def test_the_present_is_stated_in_utc() -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    stated = datetime.strptime(collect([]).time, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    assert before <= stated <= datetime.now(UTC)


def test_an_input_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileError) as caught:
        collect([], [tmp_path / "gone.prv"])
    assert caught.value.message == f"{tmp_path}/gone.prv: cannot be read: No such file or directory"
    assert caught.value.hint == "results list their input files with a checksum"
