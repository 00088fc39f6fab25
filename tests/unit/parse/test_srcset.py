"""The srcset attribute."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.parse.srcset import srcset_urls


@pytest.mark.parametrize(
    ("srcset", "urls"),
    [
        ("a 1x, b 2x", ["a", "b"]),
        ("a, b", ["a", "b"]),
        ("a,b.png 2x", ["a,b.png"]),
        (" ,, a 1x ,\n,b", ["a", "b"]),
        ("data:image/png;base64,AA,BB 1x, z.png 2x", ["data:image/png;base64,AA,BB", "z.png"]),
        ("a 1x (x, y) 2w, b", ["a", "b"]),
        ("a (never closed, b", ["a"]),
        ("a,,", ["a"]),
        ("", []),
        (", ,", []),
    ],
)
def test_candidates_are_those_of_the_standard(srcset: str, urls: list[str]) -> None:
    assert urls == srcset_urls(srcset)


_URL = st.text("ab/.:;=", min_size=1, max_size=10)
_DESCRIPTOR = st.sampled_from(["", " 1x", " 100w", " 2x 3w", " (a,b)"])


@given(st.lists(st.tuples(_URL, _DESCRIPTOR), max_size=8))
def test_what_was_joined_is_found_again(candidates: list[tuple[str, str]]) -> None:
    srcset = ", ".join(url + descriptor for url, descriptor in candidates)
    assert [url for url, _ in candidates] == srcset_urls(srcset)


@given(st.text(", \t()ab", max_size=200))
def test_urls_of_any_text_hold_no_space_and_no_comma_at_either_end(srcset: str) -> None:
    for url in srcset_urls(srcset):
        assert url and not any(character.isspace() for character in url)
        assert url == url.strip(",")
