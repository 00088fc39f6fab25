"""The pooled document stream."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from recrawl.fetch.body import MEMORY_BYTES, Body, ScratchFiles


@given(st.lists(st.binary(max_size=50_000), max_size=8), st.integers(0, 200_000))
def test_what_is_kept_is_the_start_up_to_the_cap(chunks: list[bytes], max_bytes: int) -> None:
    body = Body(max_bytes)
    whole = b"".join(chunks)
    for chunk in chunks:
        taken = body.write(chunk)
        if body.cut:
            assert taken == 0
            break
        assert taken == len(chunk)
    assert b"".join(body.pieces()) == whole[:max_bytes]
    assert body.stream().read() == whole[:max_bytes]
    assert body.size_bytes == min(len(whole), max_bytes)
    assert body.cut == (len(whole) > max_bytes)
    body.close()


def test_a_long_body_leaves_memory_for_a_file(tmp_path: Path) -> None:
    files = ScratchFiles(str(tmp_path))
    body = Body(1 << 20, files)
    body.write(b"x" * MEMORY_BYTES)
    assert body.in_memory() == b"x" * MEMORY_BYTES
    body.write(b"y")
    assert body.in_memory() is None
    assert b"".join(body.pieces()) == b"x" * MEMORY_BYTES + b"y"
    body.close()
    assert list(tmp_path.iterdir()) == []
    files.close()


def test_a_file_serves_one_body_after_the_other() -> None:
    files = ScratchFiles()
    first = Body(1 << 20, files)
    first.write(b"first" * MEMORY_BYTES)
    first.close()
    second, third = Body(1 << 20, files), Body(1 << 20, files)
    for body, content in ((second, b"2" * (MEMORY_BYTES + 1)), (third, b"3" * (MEMORY_BYTES + 2))):
        body.write(content)
    assert b"".join(second.pieces()) == b"2" * (MEMORY_BYTES + 1)
    assert b"".join(third.pieces()) == b"3" * (MEMORY_BYTES + 2)
    second.close()
    files.close()
    third.close()
