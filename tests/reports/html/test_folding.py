"""What is folded up on a page."""

from hypothesis import given
from hypothesis import strategies as st
from unfolded import unfolded

from popmodel.reports.html.packing import folded

PAGE = """<main>
<p>before</p>
<details class="detail"><summary>A table</summary><table>{}</table></details>
<details class="detail" open><summary>Another</summary><p>{}</p></details>
<details><summary>Not this one</summary><p>stays</p></details>
</main>
"""
ESCAPED = st.text(st.characters(codec="utf-8")).map(lambda text: text.replace("<", "&lt;"))


@given(ESCAPED, ESCAPED)
def test_contents_are_put_back(one: str, other: str) -> None:
    text = PAGE.format(one, other)
    assert unfolded(folded(text)) == text


def test_only_details_of_that_class_are_folded() -> None:
    left = folded(PAGE.format("x" * 999, ""))
    assert "xxx" not in left
    assert "<p>stays</p>" in left
    assert (
        '<details class="detail" data-folded="1" open><summary>Another</summary></details>' in left
    )


def test_a_page_without_details_stays_as_it_is() -> None:
    assert folded("<main></main>\n") == "<main></main>\n" == unfolded("<main></main>\n")
