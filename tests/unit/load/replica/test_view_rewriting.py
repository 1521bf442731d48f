"""Views whose text names databases that have other names on the target."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hive_replication.load.replica.name_mapping import NameMapping
from hive_replication.load.replica.view_rewriting import keeps_text, renamed_databases, rewritten
from hive_replication.load.replica.view_text import CannotRewrite, ReadsReplica
from hive_replication.metastore.types import StorageDescriptor, Table
from hive_replication.policy.model import RenamedViews
from hive_replication.verify.columns_and_parameters import expected_shape, shape_differences, table_shape
from hive_replication.verify.compare import Comparer, Listed, Pair

#: ``order`` is a word of SQL, and two databases swap their names.
DATABASES = {"sales": "replica", "crm": "order", "left": "right", "right": "left"}


def view(text: str, kind: str = "VIRTUAL_VIEW", **parameters: str) -> Table:
    return Table(
        tableName="v",
        dbName="sales",
        tableType=kind,
        sd=StorageDescriptor(cols=[]),
        viewOriginalText=text,
        viewExpandedText=text,
        parameters=parameters,
    )


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        # as Hive 3.1.3 and 4.2.0 expand texts
        ("SELECT `o`.`a` FROM `sales`.`orders` `o`", "SELECT `o`.`a` FROM `replica`.`orders` `o`"),
        (
            "select sales.shout(`sales`.`a`) as `b`, `sales`.`s`.`sales` as `c` from `sales`.`t` `sales` "
            "where sales.shout(`sales`.`a`) <> 'sales.t'",
            "select `replica`.shout(`sales`.`a`) as `b`, `sales`.`s`.`sales` as `c` from `replica`.`t` `sales` "
            "where `replica`.shout(`sales`.`a`) <> 'sales.t'",
        ),
        (
            "with sales as (select `t`.`a` from `sales`.`t`) select `sales`.`a`, `q`.`a` as `e` from sales join `sales`.`t` `q` "
            "on `sales`.`a` = `q`.`a`",
            "with sales as (select `t`.`a` from `replica`.`t`) select `sales`.`a`, `q`.`a` as `e` "
            "from sales join `replica`.`t` `q` on `sales`.`a` = `q`.`a`",
        ),
        ("select `sales.f`(`t`.`a`) from `sales`.`t`", "select `replica.f`(`t`.`a`) from `replica`.`t`"),
        # as people write them
        ("select a from SALES.orders, sales . `x`", "select a from `replica`.orders, `replica` . `x`"),
        ("select * from sales.a join crm.b on a.x = b.x", "select * from `replica`.a join `order`.b on a.x = b.x"),
        ("select * from left.a union all select * from right.a", "select * from `right`.a union all select * from `left`.a"),
        ("from sales.t select a where a > 1", "from `replica`.t select a where a > 1"),
        ("with c as (select 1 a from sales.t) select * from c", "with c as (select 1 a from `replica`.t) select * from c"),
        ("select a from (select a from sales.t) sales", "select a from (select a from `replica`.t) sales"),
        ("select a from x where a in (select b from sales.t)", "select a from x where a in (select b from `replica`.t)"),
        ("select sales.f(a), `sales`.`g`(b) from t", "select `replica`.f(a), `replica`.`g`(b) from t"),
        ("select sales.count(a) over (partition by b) from t", "select `replica`.count(a) over (partition by b) from t"),
        ("select `sales.count`(distinct a), `sales.x`() from t", "select `replica.count`(distinct a), `replica.x`() from t"),
        ("select /*+ mapjoin(sales) */ a from sales.t sales", "select /*+ mapjoin(sales) */ a from `replica`.t sales"),
        ("select a from t left join left.x on true", "select a from t left join `right`.x on true"),
        ("select a from spark_catalog.sales.t", "select a from spark_catalog.`replica`.t"),
        (
            "select a, b from sales.t lateral view explode(sales.c) sales as b",
            "select a, b from `replica`.t lateral view explode(sales.c) sales as b",
        ),
        ("select a from sales.t tablesample(10 percent) s", "select a from `replica`.t tablesample(10 percent) s"),
        (
            "select a,\tcount(*)\nfrom sales.t -- of sales.t\ngroup by a with rollup",
            "select a,\tcount(*)\nfrom `replica`.t -- of sales.t\ngroup by a with rollup",
        ),
        # the database's name is also that of a table, an alias, a common table expression, a column, a field
        ("SELECT `sales`.`a` FROM `sales`.`sales`", "SELECT `sales`.`a` FROM `replica`.`sales`"),
        ("SELECT `sales`.`a` FROM `sales`.`orders` `sales`", "SELECT `sales`.`a` FROM `replica`.`orders` `sales`"),
        ("SELECT `sales`.`t`.`a` FROM `sales`.`t` `sales`", "SELECT `sales`.`t`.`a` FROM `replica`.`t` `sales`"),
        (
            "with sales as (select 1 a from sales.t) select sales.a from sales join sales.x on x.sales = sales.a",
            "with sales as (select 1 a from `replica`.t) select sales.a from sales join `replica`.x on x.sales = sales.a",
        ),
        (
            "select x.sales.a, f(x).sales, x.a.sales sales from sales.x order by sales",
            "select x.sales.a, f(x).sales, x.a.sales sales from `replica`.x order by sales",
        ),
        (
            "select named_struct('sales', a) as sales, cast(a as struct<sales:int>).sales from sales.t",
            "select named_struct('sales', a) as sales, cast(a as struct<sales:int>).sales from `replica`.t",
        ),
        (
            "select 'from sales.t', \"sales.t\", 'it\\'s sales.t', `sales.t` /* sales.t */ from sales.t /* sales.t */",
            "select 'from sales.t', \"sales.t\", 'it\\'s sales.t', `sales.t` /* sales.t */ from `replica`.t /* sales.t */",
        ),
        ("select 'naïve ☃ 😀' from sales.t", "select 'naïve ☃ 😀' from `replica`.t"),
        ("select a from sales.t join sales.u using (sales)", "select a from `replica`.t join `replica`.u using (sales)"),
        ("select a from sales.2020_t", "select a from `replica`.2020_t"),
        (
            "select a, row_number() over sales from sales.t window sales as (partition by a)",
            "select a, row_number() over sales from `replica`.t window sales as (partition by a)",
        ),
        ("select a from sales.t where exists (select 1 from crm.u where u.a = t.a)", None),
    ],
)
def test_databases_are_replaced_and_nothing_else(text: str, wanted: str | None) -> None:
    wanted = wanted or text.replace("sales.", "`replica`.").replace("crm.", "`order`.")
    found = rewritten(view(text), DATABASES)
    assert (found.viewExpandedText, found.viewOriginalText) == (wanted, wanted)
    assert rewritten(found, {}) == found


@pytest.mark.parametrize(
    "text",
    [
        "SELECT `a` FROM `other`.`orders`",
        "SELECT 'sales.orders' FROM `other`.`x`",
        "SELECT `presales`.`a` FROM `my_sales`.`x`",
        "SELECT sales.a FROM sales",
        "SELECT sales.a.b FROM other.t",  # a field of a field
        "SELECT a FROM x.sales",
        "this is no query at all",
    ],
)
def test_what_names_none_of_them_stays(text: str) -> None:
    assert rewritten(view(text), DATABASES) == view(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT sales.t.a FROM sales.t", "whether sales is a database in sales.t.a"),
        ("SELECT sales.t.* FROM sales.t", "whether sales is a database in sales.t."),
        ("SELECT a FROM sales.t.snapshots", "in sales.t.snapshots"),
        ("SELECT a FROM lake.sales.t", "in lake.sales.t"),
        ("SELECT lake.sales.f(a) FROM t", "in the name of a function"),
        ("SELECT a FROM sales.t WHERE a = @sales.x", "passes over 'sales' at character 34"),
        ("SELECT a FROM sales.t WHERE", "cannot be parsed"),
        ("SELECT 1; SELECT a FROM sales.t", "not one query"),
        ("INSERT INTO sales.t SELECT 1", "not one query"),
        ("SELECT a FROM sales.t " + "-" * 2**18, "longer than"),
        ("SELECT " + "(" * 5_000 + "1" + ")" * 5_000 + " FROM sales.t", "cannot be parsed"),
    ],
)
def test_what_is_not_certain_is_refused(text: str, reason: str) -> None:
    with pytest.raises(CannotRewrite, match=reason):
        rewritten(view(text), DATABASES)


#: A database that replaces another one, which the policy leaves out, under the name of that.
REPLACES = {"sales_v2": "sales"}


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM sales_v2.orders UNION ALL SELECT a FROM sales.orders",
        "SELECT a FROM SALES.orders",
        "SELECT a FROM spark_catalog.sales.orders",
        "SELECT sales.f(a) FROM sales_v2.orders",
        "SELECT `sales.f`(a) FROM t",
    ],
)
def test_what_reads_a_database_whose_name_is_a_replicas_is_refused(text: str) -> None:
    with pytest.raises(ReadsReplica, match=r"reads sales, which is the replica of sales_v2 on the target"):
        rewritten(view(text), REPLACES)
    with pytest.raises(ReadsReplica, match="reads sales"):
        rewritten(view("SELECT a FROM t", **{"view.catalogAndNamespace.part.1": "sales"}), REPLACES)


def test_what_is_only_spelled_like_a_replica_is_not_refused() -> None:
    for text in (
        "SELECT sales.a, sales.sales.b FROM {}.orders sales",
        "SELECT sales, 'sales.x' FROM {}.sales JOIN other.sales USING (sales)",
        "WITH sales AS (SELECT 1 a FROM {}.t) SELECT sales.a sales FROM sales",
    ):
        assert rewritten(view(text.format("sales_v2")), REPLACES).viewExpandedText == text.format("`sales`")


READS_REPLICA = [
    view("SELECT a FROM sales.orders"),
    view("SELECT sales_v2.orders.a, o.b FROM sales_v2.orders JOIN sales.orders o"),  # of which a column is not certain
    view("SELECT sales_v2.t.a FROM sales_v2.t", **{"view.catalogAndNamespace.part.1": "sales"}),
]


@pytest.mark.parametrize("old", READS_REPLICA)
def test_views_that_read_the_replica_instead_are_told_or_held(old: Table) -> None:
    """With rewrite-or-warn they were replicated, equal in all comparisons, and a failback overwrote the originals."""
    plain = NameMapping("uuid/sales_v2", "sales_v2", "sales", "hdfs://a/v2.db", "hdfs://b/sales.db", ("hdfs://a/",))
    mapping = replace(plain, renamed_views="warn", databases=REPLACES)
    assert (mapping.why_held(old), mapping.reads_source(mapping.new_table(old, 7))) == ("", True)
    assert keeps_text(old, REPLACES, "warn")
    assert mapping.reads_source(view("SELECT a FROM sales_v2.orders"))
    settings: tuple[RenamedViews, ...] = ("rewrite", "rewrite-or-warn")
    for setting in settings:
        held = "the view cannot be rewritten for sales: it reads sales, which is the replica of sales_v2 on the target"
        assert replace(mapping, renamed_views=setting).why_held(old) == held
        assert not keeps_text(old, REPLACES, setting)
        expected = expected_shape(old, REPLACES, {}, setting)
        (found,) = shape_differences(expected, table_shape(mapping.new_table(old, 7)), [])
        assert found.endswith("is the replica of sales_v2 on the target' on the source"), found


def test_views_of_a_database_that_a_replica_replaces_are_held_by_its_name() -> None:
    plain = NameMapping("uuid/sales_v2", "sales_v2", "sales", "hdfs://a/v2.db", "hdfs://b/sales.db", ("hdfs://a/",))
    mapping, old = replace(plain, databases=REPLACES), view("SELECT a FROM sales.orders")
    reason = "the view reads sales.orders, and sales is the replica of sales_v2 on the target"
    assert replace(mapping, renamed_views="hold").why_held(old) == reason


@pytest.mark.parametrize(
    "text",
    [
        "SELECT sales.t.a FROM t",
        "SELECT sales.t.* FROM t",
        "SELECT sales.t.s.x FROM T",
        "SELECT spark_catalog.sales.t.a FROM t",
        "SELECT spark_catalog.sales.t.a FROM spark_catalog.sales.t",
        "SELECT spark_catalog.sales.t.a FROM sales.t JOIN sales.u sales ON true",
        "SELECT spark_catalog.sales.t.s.x FROM spark_catalog.sales.t",
        "SELECT spark_catalog.sales.t.* FROM spark_catalog.sales.t",
    ],
)
@pytest.mark.parametrize("parameter", ["view.catalogAndNamespace.part.1", "view.default.database"])
def test_columns_that_spark_finds_by_their_database_are_refused(text: str, parameter: str) -> None:
    """They kept the source's name, which Spark does not find on the target."""
    with pytest.raises(CannotRewrite, match="whether sales is a database in"):
        rewritten(view(text, **{parameter: "Sales"}), DATABASES)


@pytest.mark.parametrize(
    "text", ["SELECT sales.t.a FROM u sales", "SELECT sales.s.x FROM t", "SELECT x.sales.t.a, spark_catalog.sales.t FROM x, t"]
)
def test_fields_that_are_spelled_like_the_database_of_unqualified_names_stay(text: str) -> None:
    assert rewritten(view(text, **{"view.catalogAndNamespace.part.1": "sales"}), DATABASES).viewExpandedText == text


def test_only_views_are_rewritten() -> None:
    table = view("SELECT a FROM sales.x", "MANAGED_TABLE")
    assert rewritten(table, DATABASES) is table


def test_the_database_of_sparks_unqualified_names() -> None:
    spark = {"view.catalogAndNamespace.part.0": "spark_catalog", "view.catalogAndNamespace.part.1": "sales", "a": "sales"}
    found = rewritten(view("SELECT a FROM t", **spark), DATABASES)
    assert found.parameters == spark | {"view.catalogAndNamespace.part.1": "replica"}


def test_the_text_of_presto_is_not_known() -> None:
    with pytest.raises(CannotRewrite, match="Presto"):
        rewritten(view("/* Presto View: eyJ9 */", presto_view="true"), DATABASES)
    assert rewritten(view("/* Presto View */", presto_view="true"), {}).viewExpandedText == "/* Presto View */"


def test_databases_that_have_another_name() -> None:
    policy = {"a": "a", "b": "c", "sales": "x"}
    assert renamed_databases(policy, "sales", "replica") == {"b": "c", "sales": "replica"}
    assert renamed_databases(policy, "sales", "sales") == {"b": "c"}


CERTAIN, UNCERTAIN = view("SELECT a FROM sales.t"), view("SELECT sales.t.a FROM sales.t")


@pytest.mark.parametrize(
    ("setting", "table", "held", "text"),
    [
        ("rewrite", CERTAIN, "", "SELECT a FROM `replica`.t"),
        ("rewrite", UNCERTAIN, "the view cannot be rewritten for replica: it is not certain", None),
        ("rewrite-or-warn", CERTAIN, "", "SELECT a FROM `replica`.t"),
        ("rewrite-or-warn", UNCERTAIN, "", UNCERTAIN.viewOriginalText),
        ("warn", CERTAIN, "", CERTAIN.viewOriginalText),
        ("hold", CERTAIN, "the view reads sales.t, and the database is replica on the target", None),
    ],
)
def test_what_the_policy_says(setting: str, table: Table, held: str, text: str | None) -> None:
    plain = NameMapping("uuid/sales", "sales", "replica", "hdfs://a/sales.db", "hdfs://b/replica.db", ("hdfs://a/",))
    mapping = replace(plain, renamed_views=setting, databases={"sales": "replica"})  # type: ignore[arg-type]
    assert mapping.why_held(table).startswith(held)
    assert bool(mapping.why_held(table)) == bool(held)
    if text is not None:
        image = mapping.new_table(table, 7)
        assert (image.viewOriginalText, image.viewExpandedText) == (text, text)
        assert mapping.reads_source(image) == ("sales.t" in text)


def test_a_text_rewritten_there_and_back_counts_as_the_same() -> None:
    there = rewritten(CERTAIN, {"sales": "replica"})
    back = rewritten(there, {"replica": "sales"})
    assert back.viewOriginalText == "SELECT a FROM `sales`.t"
    assert list(shape_differences(expected_shape(there, {"replica": "sales"}, {}), table_shape(CERTAIN), [])) == []


def test_comparisons_expect_the_other_names() -> None:
    databases = {"sales": "replica"}
    for table, text, differences in (
        (CERTAIN, "SELECT a FROM `replica`.t", 0),
        (CERTAIN, CERTAIN.viewOriginalText, 2),
        (UNCERTAIN, UNCERTAIN.viewOriginalText, 1),
    ):
        found = list(shape_differences(expected_shape(table, databases, {}), table_shape(view(text or "")), []))
        assert len(found) == differences, found


@pytest.mark.parametrize(
    ("setting", "table", "keeps"),
    [
        ("rewrite", UNCERTAIN, False),
        ("rewrite-or-warn", UNCERTAIN, True),
        ("rewrite-or-warn", CERTAIN, False),
        ("warn", UNCERTAIN, True),
        ("warn", CERTAIN, True),
        ("warn", view("SELECT a FROM other.t"), False),
        ("warn", view("SELECT a FROM t", **{"view.catalogAndNamespace.part.1": "sales"}), True),
        ("hold", CERTAIN, False),
    ],
)
def test_comparisons_expect_the_text_that_stays_by_the_policy(setting: RenamedViews, table: Table, *, keeps: bool) -> None:
    """They named it as a difference in each look, and no repair changed it."""
    databases = {"sales": "replica"}
    expected = expected_shape(table, databases, {}, setting)
    assert keeps_text(table, databases, setting) == keeps
    assert (expected == table_shape(table)) == (keeps or table.viewOriginalText == "SELECT a FROM other.t")
    comparer = Comparer(["hdfs://a/"], ["hdfs://b/"], lambda _ours, _theirs: False, databases=databases, renamed_views=setting)
    found = comparer.table("v", [Pair("", Listed(table, ()), Listed(table, ()))])
    assert (found.keeps_text, not found.differences) == (keeps, expected == table_shape(table))
    changed = view(f"{table.viewOriginalText} WHERE a > 1", **table.parameters)
    assert list(shape_differences(expected, table_shape(changed), []))
