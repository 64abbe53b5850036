//! The named server's memory: who allocates, in pages of which size, and what was swapped out.

use dyno_record::audit::{AuditFinding, Risk};
use dyno_record::fact::Gap;
use dyno_record::facts::{Facts, Swap};

use super::draft::{
    ALL, Check, FAST, Looked, Say, Seen, THROUGHPUT, counted, finding, measured, quoted, server, unknown,
};

pub(super) const CHECKS: &[Check] = &[
    Check { id: "app.alloc", about: "its allocator", look: allocator },
    Check { id: "app.thp", about: "huge pages under its memory", look: huge_pages },
    Check { id: "app.swap", about: "memory of it that was swapped out", look: swapped },
];

/// Memory below which a TLB reaches nearly everything: 1,536 entries of 4 kB pages, and the caches beyond them.
const LARGE_BYTES: u64 = 256 << 20;

fn allocator(facts: &Facts) -> Seen {
    let server = server(facts)?;
    let name = server.allocator.known()?;
    // Processes do not share an allocator.
    let threads = server.threads.known()?.of_largest;
    let found = format!("{name}, {} in the largest process", counted(threads as usize, "thread"));
    if name != "glibc" && name != "musl" || threads < 2 {
        return Ok(Looked::Fine(found));
    }
    Ok(finding("Several threads get their memory from the C library's malloc", found, "jemalloc or mimalloc, where diagnose sees malloc take the CPU")
        .gain(THROUGHPUT, unknown("of malloc's own time it is half: 1.7 to 2.0 times as many allocations a second with two threads; nothing where nothing is allocated"))
        .risk(Risk::Operational, "memory is kept and given back in other ways")
        .why("When one thread frees memory that another one took, both need the same lock.")
        .see(&["dyno diagnose PID --load 'URL -c 64'"])
        .apply(&["LD_PRELOAD=libjemalloc.so.2 before the server's command; then restart it"])
        .revert(&["without LD_PRELOAD; then restart it"])
        .into())
}

fn huge_pages(facts: &Facts) -> Seen {
    let server = server(facts)?;
    let (rss, huge) = (*server.rss_bytes.known()?, *server.huge_bytes.known()?);
    let megabytes = |bytes: u64| bytes / (1 << 20);
    // What it is told beside: with it the kernel gives the process none, whoever asks (prctl(2), PR_SET_THP_DISABLE).
    let is_denied = server.threads.value().is_some_and(|threads| threads.without_huge_pages > 0);
    let denied = if is_denied { ", which are off for this process (PR_SET_THP_DISABLE)" } else { "" };
    let found = format!("{} MB in use, {} MB of it in huge pages{denied}", megabytes(rss), megabytes(huge));
    if rss < LARGE_BYTES || huge * 10 > rss {
        return Ok(Looked::Fine(found));
    }
    if let Err(Gap::Absent(what)) = facts.memory.thp.known() {
        return Ok(Looked::NotHere(what));
    }
    // While the machine gives none, asking for some gets none.
    let is_off = facts.memory.thp.value().is_some_and(|thp| thp.contains("[never]"));
    let mut apply = vec![
        "madvise(MADV_HUGEPAGE) in the server, or glibc.malloc.hugetlb=1 in GLIBC_TUNABLES; then restart it",
    ];
    if is_off {
        apply.insert(0, "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled  # before: it is off for everybody (host.thp)");
    }
    if is_denied {
        apply.insert(0, "let the server, or who starts it, not turn huge pages off for it (PR_SET_THP_DISABLE)  # before: whoever asks gets none");
    }
    Ok(finding("Much memory lies in small pages", found, "huge pages, where it is read at random")
        .gain(FAST, measured(25.0, 31.0, "of the time of a random load in a table of 1 to 4 GB; not of a request"))
        .choice()
        .risk(Risk::Operational, "memory use grows; finding huge pages can take time")
        .why("A processor remembers where some thousand pages of memory lie. For any other page it has to read a table in memory first.")
        .see(&["grep -i huge /proc/PID/smaps_rollup"])
        .apply(&apply)
        .revert(if is_off { &["echo never | sudo tee /sys/kernel/mm/transparent_hugepage/enabled", "the start as it was"] } else { &["the start as it was"][..] })
        .into())
}

fn swapped(facts: &Facts) -> Seen {
    let server = server(facts)?;
    let bytes = *server.swapped_bytes.known()?;
    let found = format!("{} kB", bytes / 1_024);
    if bytes == 0 {
        return Ok(Looked::Fine(found));
    }
    let none = Vec::new();
    let on_disk: Vec<&Swap> =
        facts.memory.swaps.or_absent(&none)?.iter().filter(|area| area.is_on_disk()).collect();
    let used: u64 = on_disk.iter().map(|area| area.used_bytes).sum();
    if used == 0 {
        return Ok(Looked::Fine(format!("{found}, in a compressed part of memory and on no disk")));
    }
    let made = finding("Part of the server lies on a disk", found, "0 kB")
        .gain(ALL, unknown("a request that needs that part waits for the disk"))
        .loses()
        .risk(Risk::Operational, "something else has to leave memory")
        .why("Memory that was swapped out is read back page by page when it is touched.")
        .see(&["grep VmSwap /proc/PID/status", "cat /proc/swaps"])
        .revert(&["nothing to revert"]);
    // An area is read back whole, for everybody: without room for that the kernel would kill something.
    let has_room = facts.memory.available_bytes.value().is_some_and(|free| *free > 2 * used);
    let read_back = |area: &&Swap| {
        let (name, megabytes) = (quoted(&area.name), area.used_bytes >> 20);
        format!("sudo swapoff {name} && sudo swapon {name}  # reads {megabytes} MB of all programs back")
    };
    let apply = match has_room {
        true => on_disk.iter().filter(|area| area.used_bytes > 0).map(read_back).collect(),
        false => vec!["first more memory, or fewer programs: there is no room to read it back".to_owned()],
    };
    Ok(AuditFinding { apply, ..made }.into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use dyno_record::audit::{Audit, Goal};
    use dyno_record::fact::Fact;
    use dyno_record::facts::{Server, Threads};

    fn judged(change: impl FnOnce(&mut Facts)) -> Audit {
        let server = Server {
            rss_bytes: Fact::Value(1 << 30),
            huge_bytes: Fact::Value(0),
            swapped_bytes: Fact::Value(1 << 30),
            ..Server::default()
        };
        let mut facts = Facts { server: Some(server), ..Facts::default() };
        change(&mut facts);
        crate::audit::audit(&facts, Goal::Latency)
    }

    fn apply(audit: &Audit, id: &str) -> Vec<String> {
        audit.findings.iter().find(|one| one.id == id).map(|one| one.apply.clone()).unwrap_or_default()
    }

    /// Planted fault: what the machine gives is not looked at; then a server is told to ask for what nobody gives.
    #[test]
    fn huge_pages_are_turned_on_before_a_server_asks_for_them() {
        let of = |thp: &str| judged(|facts| facts.memory.thp = Fact::Value(thp.into()));
        assert_eq!(apply(&of("always [madvise] never"), "app.thp").len(), 1);
        assert!(apply(&of("always madvise [never]"), "app.thp")[0].starts_with("echo madvise"));
        let none = judged(|facts| facts.memory.thp = Fact::Absent("huge pages".into()));
        assert!(none.not_here.iter().any(|one| one.id == "app.thp"));
    }

    /// Planted fault: the process is not asked; then a server that gave huge pages up is told to ask for them, and gets none.
    #[test]
    fn a_server_for_which_huge_pages_are_off_is_told_that_first() {
        let of = |without_huge_pages: u32| {
            let threads = Threads { without_huge_pages, ..Threads::default() };
            let judged = judged(|facts| {
                facts.memory.thp = Fact::Value("always [madvise] never".into());
                facts.server.as_mut().unwrap().threads = Fact::Value(threads);
            });
            judged.findings.into_iter().find(|one| one.id == "app.thp").unwrap()
        };
        let denied = of(1);
        assert!(denied.apply[0].contains("PR_SET_THP_DISABLE") && denied.apply.len() == 2, "{denied:?}");
        assert!(denied.found.ends_with("(PR_SET_THP_DISABLE)") && of(0).apply.len() == 1);
    }

    /// Planted fault: the room is held against the server's own part; then all that others had there comes back too, and the kernel
    /// kills something.
    #[test]
    fn memory_is_read_back_from_a_disk_only_where_there_is_room_for_all_of_it() {
        let of = |free: u64, used: u64| {
            judged(|facts| {
                facts.memory.available_bytes = Fact::Value(free);
                let area = |name: &str, used_bytes| Swap { name: name.into(), bytes: 1 << 40, used_bytes };
                facts.memory.swaps = Fact::Value(vec![area("/dev/sda2", used), area("/dev/zram0", 1 << 30)]);
            })
        };
        let room = apply(&of(8 << 30, 1 << 30), "app.swap");
        assert!(room.len() == 1 && room[0].starts_with("sudo swapoff /dev/sda2 && "), "{room:?}");
        assert!(!apply(&of(8 << 30, 60 << 30), "app.swap")[0].contains("swapoff"));
        assert!(!apply(&of(1 << 29, 1 << 30), "app.swap")[0].contains("swapoff"));
        let compressed = of(8 << 30, 0);
        let fine = compressed.fine.iter().find(|one| one.id == "app.swap").unwrap();
        assert!(fine.found.contains("compressed"), "{}", fine.found);
    }
}
