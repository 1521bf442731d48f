"""Texts that others wrote show as they stand, in whatever Markdown they are put."""

from __future__ import annotations

import dagster as dg
import pytest

from hive_replication.markdown import Markdown, code_block, escaped, link, paragraph
from repl_assets.catalog.catalog import Catalog, CatalogDatabase
from repl_assets.checks.findings import EvaluationKey, Finding
from repl_assets.definitions import build_defs
from repl_assets.recording.metadata import markdown_table
from tests.unit.repl_assets.test_dagster_definitions import policy, table

IMAGE = "![x](http://foreign.example/pixel.png)"
HTML = "<img src=http://foreign.example/pixel.png>"
FENCE = f"SELECT 1\n```\n{IMAGE}\n````sql\n"


def active(text: str) -> bool:
    """Whether Markdown holds an image or HTML that is not escaped and not within code."""
    plain = ""
    fence = ""
    for line in text.splitlines():
        ticks = line[: len(line) - len(line.lstrip("`"))]
        if fence:
            fence = "" if ticks == line and len(ticks) >= len(fence) else fence
        elif len(ticks) >= 3:
            fence = ticks
        else:
            plain += line + "\n"
    return any(f"{before}{mark}" in plain and f"\\{mark}" not in plain for before in ("", " ") for mark in ("![", "<img"))


def test_the_judge_sees_what_is_active() -> None:
    assert active(IMAGE)
    assert active(f"```sql\n{FENCE}\n```")
    assert not active(f"```\n{IMAGE}\n```")


@pytest.mark.parametrize("text", [IMAGE, HTML, f"a|{IMAGE}", f"a\n{IMAGE}", f"`{IMAGE}`", f"\\{IMAGE}"])
def test_no_text_becomes_markup(text: str) -> None:
    shown = str(markdown_table(("a",), [(text,)], 1).value)
    assert not active(shown)
    assert len(shown.splitlines()) == 3
    assert "\\!" in escaped(text) or "\\<" in escaped(text)
    assert not active(paragraph(text))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, ds=1, a_b, x__load", "plain text, ds=1, a_b, x__load"),
        ("_functions", "\\_functions"),
        ("a\nb", "a b"),
        ("*a* [b](c) <d> e|f ~g~ h&amp; #i", "\\*a\\* \\[b\\](c) \\<d\\> e\\|f \\~g\\~ h\\&amp; \\#i"),
        (Markdown("[a](b)"), "[a](b)"),
    ],
)
def test_escaped(text: str, shown: str) -> None:
    assert escaped(text) == shown


def test_paragraphs_keep_their_lines_and_begin_no_lists() -> None:
    assert paragraph("a\n- b\n1. c\n# d\n===") == "a\\\n\\- b\\\n1\\. c\\\n\\# d\\\n\\==="


def test_blocks_of_code_and_links() -> None:
    assert code_block("SELECT 1", "sql") == "```sql\nSELECT 1\n```"
    assert code_block(FENCE).startswith("`````\n")
    assert link("a]b", "/x (1)") == "[a\\]b](/x%20%281%29)"


def test_nothing_of_a_table_is_active_in_definitions_and_checks() -> None:
    columns = table("x").columns
    evil = table("t", view=True, comment=f"{IMAGE}\n{HTML}", text=FENCE, columns=(type(columns[0])("a", "int", IMAGE),))
    database = CatalogDatabase("sales", "", IMAGE, "", (evil,), (("other", f"it is {IMAGE}"),))
    shown = 0
    for spec in build_defs(policy(), Catalog((database,))).resolve_all_asset_specs():
        texts = [spec.description, *(one.value for one in spec.metadata.values() if isinstance(one, dg.MarkdownMetadataValue))]
        schema = spec.metadata.get("dagster/column_schema")
        texts += [column.description for column in schema.columns] if schema else []
        for text in filter(None, texts):
            assert not active(str(text)), text
            shown += "foreign" in str(text)
    assert shown >= 6
    key = EvaluationKey(dg.AssetCheckKey(dg.AssetKey("orders"), "schema_equal"))
    assert not active(str(Finding(differences=(f"view text is {IMAGE}",)).evaluation(key).description))
