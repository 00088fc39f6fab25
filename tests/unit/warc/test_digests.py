"""Labelled digests."""

from __future__ import annotations

import base64
import hashlib

from hypothesis import given
from hypothesis import strategies as st

from recrawl.warc.digests import labelled_sha1


@given(st.binary(max_size=50))
def test_it_is_the_base_32_of_the_standard_library(data: bytes) -> None:
    digest = hashlib.sha1(data, usedforsecurity=False)
    assert labelled_sha1(digest) == "sha1:" + base64.b32encode(digest.digest()).decode()
