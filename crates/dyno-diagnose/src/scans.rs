//! Whole tables that are read row by row: engines that keep tables, known by the functions that go from one row to the next.
//!
//! The statement decides what an engine reads, and is not to be seen. What is: of the time below the function that answers it, how
//! much goes on to the next row, against how much finds rows by a key or hands them out. Asked by the rule for hot spots.

use dyno_record::finding::Class;

use super::draft::{Draft, percent};
use super::facts::{Facts, OnCpu};
use super::names;

/// An engine that keeps tables.
struct Engine {
    /// Whose time is the reading of a table, with the looks at each row.
    reads: &'static [&'static str],
    /// Goes on to the next row, whatever is in it, or looks whether it is one of those that are asked for.
    each: &'static [&'static str],
    /// Finds rows by a key, or hands out those that were asked for.
    some: &'static [&'static str],
    next: &'static str,
}

/// Half of the CPU: nothing else is worth as much.
const READS_MIN: f64 = 0.50;
/// Of the CPU, what going from row to row must take to be told by: the rest looks at them.
const EACH_MIN: f64 = 0.10;
/// So many times as much as what finds rows by a key or hands them out. Where each row that is read is one that was asked for,
/// handing it out takes no less than reading it.
const OF_SOME_MIN: f64 = 4.0;

const INDEX: &str = "an index for what is asked for, or a question that can use the one that there is (values of the column's own \
     type, no function around the column): EXPLAIN says which tables are read whole. Where all rows are meant, keep what was \
     computed of them, or leave it so";

const ENGINES: [Engine; 8] = [
    // PostgreSQL. Before 18 one function serves all scans; copies and the making of an index do not go through it.
    Engine {
        reads: &["ExecScan", "ExecSeqScan*", "SeqNext"],
        each: &["heap_getnextslot", "heapgettup*", "ExecSeqScan*", "SeqNext"],
        some: &["index_getnext_*", "IndexNext*", "IndexOnlyNext", "BitmapHeapNext", "ExecIndexScan*"],
        next: INDEX,
    },
    // MariaDB and MySQL.
    Engine {
        reads: &["sub_select(*", "rr_sequential(*", "TableScanIterator::*", "FilterIterator::Read*"],
        each: &["handler::ha_rnd_next(*", "rr_sequential(*", "TableScanIterator::*"],
        some: &[
            "handler::ha_index_*",
            "handler::ha_rnd_pos*",
            "join_read_*key*",
            "RefIterator<*",
            "EQRefIterator::*",
            "IndexRangeScanIterator::*",
        ],
        next: INDEX,
    },
    // SQLite.
    Engine {
        reads: &["sqlite3VdbeExec"],
        each: &["sqlite3BtreeNext", "btreeNext"],
        some: &["sqlite3BtreeMovetoUnpacked", "sqlite3BtreeTableMoveto", "sqlite3BtreeIndexMoveto"],
        next: INDEX,
    },
    // MongoDB.
    Engine {
        reads: &["mongo::CollectionScan::*", "mongo::sbe::ScanStage*", "mongo::sbe::FilterStage<*"],
        each: &["mongo::CollectionScan::*", "mongo::sbe::ScanStage*"],
        some: &["mongo::IndexScan::*", "mongo::sbe::*IndexScan*", "mongo::FetchStage::*"],
        next: INDEX,
    },
    // Firebird.
    Engine {
        reads: &["Jrd::FullTableScan::*", "Jrd::FilteredStream::*"],
        each: &["Jrd::FullTableScan::*"],
        some: &["Jrd::BitmapTableScan::*", "Jrd::IndexTableScan::*"],
        next: INDEX,
    },
    // Directories: OpenLDAP and 389.
    Engine {
        reads: &["mdb_search", "ldbm_back_next_search_entry*"],
        each: &["mdb_id2edata", "mdb_entry_decode", "test_filter*", "slapi_vattr_filter_test*"],
        some: &["slap_send_search_entry", "send_ldap_search_entry*"],
        next: "an index for each attribute that is asked for (olcDbIndex uid eq), made for what is there already (slapindex), and a base \
               that holds less",
    },
    // Documents, by XPath.
    Engine {
        reads: &["xmlXPathCompiledEval*", "xmlXPathEval*"],
        each: &[
            "xmlXPathNext*",
            "xmlXPathNodeSetAdd*",
            "xmlXPathEqualValues",
            "xmlStrEqual",
            "xmlXPathCastNode*",
        ],
        some: &["xsltKeyFunction", "xmlHashLookup*"],
        next: "a key for what is looked for (xsl:key and key(), a table of the nodes by it), or a way to it that does not begin with //",
    },
    // Tables of keys in a file: GDBM and TDB.
    Engine {
        reads: &["gdbm_nextkey", "tdb_traverse*", "tdb_nextkey"],
        each: &["gdbm_nextkey", "tdb_traverse*", "tdb_nextkey"],
        some: &["gdbm_fetch", "tdb_fetch*"],
        next: "ask for a key, or keep a second table by what is asked for",
    },
];

/// Functions of run-times and libraries that compare one item after another of a list, and do nothing else: V8's, Java's, Go's, PHP's, CPython's,
/// Ruby's, .NET's and GLib's. C++'s look through texts as well.
const LISTS: &[&str] = &[
    "Builtins_ArrayIncludes*",
    "Builtins_ArrayIndexOf*",
    "Builtins_ArrayPrototypeLastIndexOf",
    "java.util.ArrayList.indexOf*",
    "java.util.ArrayList.contains",
    "java.util.LinkedList.indexOf",
    "java.util.LinkedList.node",
    "java.util.concurrent.CopyOnWriteArrayList.indexOf*",
    "slices.Index[*",
    "slices.Contains[*",
    "php_search_array",
    "list_contains",
    "list_index",
    "rb_ary_includes",
    "rb_ary_index",
    "System.Array.IndexOf*",
    "System.Collections.Generic.List`1*.IndexOf*",
    "g_list_find",
    "g_list_nth*",
    "g_slist_find",
    "g_slist_nth*",
];

/// Lists in which something is looked for item by item, where that is most of what is done: of a thousand items a table finds one at
/// the price of a few.
pub(super) fn whole_lists(on: &OnCpu<'_>) -> Option<Draft> {
    let next = "a set or a table by what is looked for, made once; or a sorted list and a binary search";
    spent_in(on, LISTS, READS_MIN, "looks through lists item by item", next)
}

/// What is spent in functions of a table, from a share of the CPU on.
pub(super) fn spent_in(
    on: &OnCpu<'_>,
    table: names::Table,
    least: f64,
    does: &str,
    next: &str,
) -> Option<Draft> {
    let share = on.share_with(table);
    (share >= least).then(|| {
        let functions = on.seen_of(table).into_iter().take(3).collect::<Vec<_>>().join(", ");
        Draft::new(Class::UserHotSpot, share, format!("{} of the CPU {does}", percent(share)))
            .fact(format!("in {functions}"), share, "share")
            .next(next)
            .at(on.place_with(table))
    })
}

/// What an engine reads row by row, where that is most of what is done.
pub(super) fn whole_tables(facts: &Facts<'_>) -> Option<Draft> {
    let on = facts.on.as_ref()?;
    let (engine, share) = ENGINES.iter().find_map(|engine| Some((engine, share(on, engine)?)))?;
    let each =
        [engine.each, engine.reads].into_iter().flat_map(|table| on.seen_of(table).into_iter().take(2));
    let mut seen = Vec::new();
    for name in each {
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    Some(
        Draft::new(
            Class::UserHotSpot,
            share,
            format!("{} of the CPU reads tables row by row", percent(share)),
        )
        .fact(format!("in {}", seen.join(", ")), share, "share")
        .sign(
            "hardly any row is found by a key, or handed out: whether all of them are meant, who asks knows",
        )
        .next(engine.next),
    )
}

/// The share of the CPU in which an engine reads a table, where it goes from row to row there.
fn share(on: &OnCpu<'_>, engine: &Engine) -> Option<f64> {
    let below = |table: names::Table| {
        on.share_where(|frames| {
            let any = |table: names::Table| frames.iter().any(|frame| names::is(&frame.name, table));
            any(engine.reads) && any(table)
        })
    };
    let each = below(engine.each);
    if each < EACH_MIN {
        return None;
    }
    let (reads, some) = (below(engine.reads), below(engine.some));
    (reads >= READS_MIN && each >= OF_SOME_MIN * some).then_some(reads)
}

#[cfg(test)]
mod tests {
    use dyno_record::finding::Class;

    use crate::scene::Scene;

    /// A server of two threads, so many hundredths of whose time are in these stacks.
    fn server(stacks: &[(&str, u64)]) -> Vec<Class> {
        let spent: u64 = stacks.iter().map(|(_, weight)| weight).sum();
        let scene = Scene::new(&[9.0, 9.0]).on("main;serve;parse", (100 - spent) / 2);
        let scene = scene.on("main;serve;answer", 100 - spent - (100 - spent) / 2);
        stacks.iter().fold(scene, |scene, (stack, weight)| scene.on(stack, *weight)).classes()
    }

    /// Planted faults: the function that goes on counts alone (`each` in place of `reads`); no engine but the first is asked.
    #[test]
    fn tables_that_are_read_row_by_row_are_told_by_their_engines_functions() {
        for (each, looks) in [
            ("main;serve;ExecScan;0x10;heap_getnextslot", "main;serve;ExecScan;ExecInterpExpr"),
            (
                "main;serve;sub_select(JOIN*, int);handler::ha_rnd_next(unsigned char*)",
                "main;serve;sub_select(JOIN*, int);0x20",
            ),
            ("main;serve;mdb_search;mdb_entry_decode", "main;serve;mdb_search;0x20"),
            ("main;serve;sqlite3VdbeExec;sqlite3BtreeNext", "main;serve;sqlite3VdbeExec"),
            ("main;serve;gdbm_nextkey", "main;serve;gdbm_nextkey"),
            (
                "main;serve;xmlXPathCompiledEval;0x40;xmlXPathNextDescendant",
                "main;serve;xmlXPathCompiledEval;0x40",
            ),
        ] {
            assert_eq!(server(&[(each, 20), (looks, 30)]), [Class::UserHotSpot], "{each}");
            assert_eq!(server(&[(each, 20), (looks, 28)]), [], "less than half: {each}");
            let is_one = each == looks;
            assert_eq!(server(&[(each, 9), (looks, 60)]).is_empty(), !is_one, "hardly ever goes on: {each}");
        }
    }

    /// Planted fault: what is found by a key is not set against it (`OF_SOME_MIN` of 0).
    #[test]
    fn rows_that_are_found_by_a_key_or_handed_out_are_no_whole_table() {
        let index = ("main;serve;ExecScan;0x11;index_getnext_slot", 10);
        assert_eq!(
            server(&[("main;serve;ExecScan;0x10;heap_getnextslot", 35), ("main;serve;ExecScan", 15), index]),
            []
        );
        assert_eq!(
            server(&[("main;serve;ExecScan;0x10;heap_getnextslot", 45), ("main;serve;ExecScan", 15), index]),
            [Class::UserHotSpot]
        );
        let handed = ("main;serve;mdb_search;slap_send_search_entry;write", 30);
        assert_eq!(server(&[("main;serve;mdb_search;mdb_id2edata;mdb_entry_decode", 30), handed]), []);
    }

    /// By however many threads. Planted faults: no such function is known; however little of the time it takes; what asks a function of the
    /// program for each item is one.
    #[test]
    fn lists_that_are_looked_through_item_by_item_are_told() {
        let searched = |name: &str, share: u64| {
            let scene = Scene::new(&[9.9, 9.9]).on(&format!("main;serve;{name}"), share);
            scene.on("main;serve;work", 50).on("main;serve;other", 50 - share).classes()
        };
        for name in ["Builtins_ArrayIncludesSmiOrObject", "slices.Contains[...]", "php_search_array;0x1"] {
            assert_eq!(searched(name, 50), [Class::UserHotSpot], "{name}");
            assert_eq!(searched(name, 40), [], "{name}");
        }
        assert_eq!(searched("slices.ContainsFunc[...];main.handles", 50), [], "all of its work lies below");
    }

    /// A table that is copied or gets an index is read whole, and must be. Planted fault: whatever goes on to the next row counts.
    #[test]
    fn a_table_that_is_copied_is_meant() {
        assert_eq!(server(&[("main;serve;DoCopyTo;heap_getnextslot", 45), ("main;serve;DoCopyTo", 15)]), []);
    }
}
