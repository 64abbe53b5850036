//! Rules for time lost on the way to memory: pages, the TLB's reach, the order of access, lines that CPUs fight over.
//!
//! There are no hardware counters on many machines. What stands in for them are the addresses that hot instructions used,
//! computed from the registers of the samples.

use std::collections::{BTreeMap, BTreeSet};

use dyno_record::finding::{Class, Confidence};
use dyno_record::observation::Registers;

use super::children;
use super::code::Walk;
use super::draft::{Draft, Outcome, percent, places};
use super::facts::{Cost, Facts, Hot, OnCpu};
use super::names;

/// CPU time in making and taking away pages from which it is worth a change.
const FAULT_SHARE_MIN: f64 = 0.15;
/// Share of samples in loops of one kind from which it is what the program does.
const LOOP_SHARE_MIN: f64 = 0.30;
/// A cache line. A stride of at least this uses one number of each line it fetches.
const LINE_BYTES: u64 = 64;
/// The first cache of today's CPUs: 32 KiB and more.
const FIRST_CACHE_SETS: u64 = 64;
const FIRST_CACHE_WAYS: u64 = 8;
/// Beyond some 1,500 pages of 4 KiB (6 MiB) the second-level TLB of today's CPUs reaches nothing more; walks begin to
/// hurt when their tables leave the cache, from some 256 MiB on.
const REACH_BYTES: u64 = 256 << 20;
/// Rows of a table that lie within less than this stay in the second cache, however they are gone through.
const ROWS_BYTES_MIN: u64 = 4 << 20;
/// Share of the anonymous memory in huge pages from which the TLB's reach is taken care of.
const HUGE_SHARE_MIN: f64 = 0.5;
/// Of the sampled addresses, this share must lie in pages of their own to be called scattered.
const SCATTERED_MIN: f64 = 0.5;
/// Threads that get into each other's way run at the same time, for a fifth of it at least: so many CPUs are in use.
pub(super) const TOGETHER_MIN: f64 = 1.2;
/// Fewer sampled addresses prove nothing.
const ADDRESSES_MIN: usize = 16;

/// Of the CPU time, what fork must take to be told.
const FORK_SHARE_MIN: f64 = 0.05;

/// Of the CPU time, what goes into children too short to be sampled: what they do besides is no more than beginning and ending,
/// which take half a millisecond.
const SHORT_SHARE_MIN: f64 = 0.3;

/// Of the time in which pages are made, what new processes must take for their number to be what is advised on; and how many.
const OF_NEW_MIN: f64 = 0.5;
const NEW_MIN: usize = 10;

/// Of the time in which pages are made, what goes to those of mapped files from which on these are advised on.
const OF_FILES_MIN: f64 = 0.25;

const OF_FILES: &str = "map a file once and keep the map; make it longer in large steps (ftruncate by mebibytes, then cut it at the end), \
     or write it with pwrite; where it is read, MAP_POPULATE or madvise ahead";
/// The same of what looks for pages to take back.
const RECLAIMED_MIN: f64 = 0.5;

const MORE_MEMORY: &str = "a larger limit of memory (memory.max, memory.high, a container's limit) or a smaller heap and caches; files that are \
     read once: posix_fadvise DONTNEED, or O_DIRECT, so that their pages need not be found and taken back";
const LARGE_BUFFERS: &str =
    "keep large buffers instead of giving them back; raise malloc's M_MMAP_THRESHOLD and M_TRIM_THRESHOLD";
const NO_CODE: &str =
    "the code and registers at hot instructions (x86-64 and the right to read the target are needed)";

/// Pages are made or read all the time.
pub(super) fn page_faults(facts: &Facts<'_>) -> Outcome {
    let Some(share) = facts.cpu_share(&[Cost::PageFault]) else {
        return facts.no_kernel_profile();
    };
    let waited = waited(facts);
    let process = &facts.seen.process;
    let (rate, unit) = facts.per(process.minor_faults + process.major_faults);
    let (short, programs) = facts.on.as_ref().map(OnCpu::short_processes).unwrap_or_default();
    if short >= SHORT_SHARE_MIN.max(share) {
        let faults =
            format!("{rate:.0} page faults {unit}: each child has its own memory made, and taken away");
        return Outcome::Found(
            Draft::new(
                Class::PageFaults,
                short,
                format!("{} of the CPU runs children that live for less than a millisecond", percent(short)),
            )
            .sure(Confidence::Medium)
            .sign(format!("most of it is in {}", programs.join(", ")))
            .fact(faults, rate, unit)
            .next(children::FEWER)
            .specimen("buffer-per-request"),
        );
    }
    if share < FAULT_SHARE_MIN && waited < FAULT_SHARE_MIN {
        if let Some(draft) = children::short_lived(facts.seen) {
            return Outcome::Found(draft);
        }
        let text = format!("{rate:.0} page faults {unit}, {} of the CPU", percent(share));
        let waits = percent(waited);
        let text = match waited > share {
            true => format!("{text}; {waits} of the working threads' time waits for pages"),
            false => text,
        };
        return Outcome::near(&[(share.max(waited), FAULT_SHARE_MIN)], text);
    }
    if share < FAULT_SHARE_MIN {
        return Outcome::Found(waiting(facts, waited, (rate, unit)));
    }
    let by = facts.on.as_ref().map(|on| on.places(&[Cost::PageFault])).unwrap_or_default();
    let forks = facts.on.as_ref().map_or(0.0, |on| on.share_with(names::FORK));
    let on = facts.on.as_ref();
    let (of_new, new) = on.map_or((0.0, 0), |on| on.in_new_processes(Cost::PageFault, facts.seen));
    let by_new = of_new >= OF_NEW_MIN && new >= NEW_MIN;
    let of_files = on.map_or(0.0, |on| on.share_with(names::FILE_PAGES));
    let reclaimed = on.map_or(0.0, |on| on.share_with(names::RECLAIM));
    let next = match () {
        () if reclaimed >= RECLAIMED_MIN * share => MORE_MEMORY,
        () if forks * 2.0 >= share || by_new => children::FEWER,
        () if of_files >= OF_FILES_MIN * share => OF_FILES,
        () => LARGE_BUFFERS,
    };
    let forked = (forks >= FORK_SHARE_MIN)
        .then(|| format!("{} of the CPU copies address spaces for children (fork)", percent(forks)));
    Outcome::Found(
        Draft::new(
            Class::PageFaults,
            share.max(waited),
            format!("{} of the CPU makes pages and takes them away", percent(share)),
        )
        .sure(if share >= 2.0 * FAULT_SHARE_MIN { Confidence::High } else { Confidence::Medium })
        .fact(
            format!("{rate:.1} page faults {unit}, {} of them from a disk", process.major_faults),
            rate,
            unit,
        )
        .sign_if(forked)
        .sign_if((reclaimed >= RECLAIMED_MIN * share).then(|| {
            format!("{} of the CPU looks for pages to take back: memory is short", percent(reclaimed))
        }))
        .sign_if(by_new.then(|| {
            format!(
                "{} of that is in {new} processes that began meanwhile: each has its memory made anew",
                percent(of_new)
            )
        }))
        .sign_if(places(&by))
        .next(next)
        .at(by.first().map(|place| place.0.clone()))
        .specimen("buffer-per-request"),
    )
}

/// Share of the threads' working time that waits for pages, or for the lock of the address space.
fn waited(facts: &Facts<'_>) -> f64 {
    facts.off.as_ref().map_or(0.0, |off| off.share(|time| time.fault))
}

/// Whether that is a finding by itself, however little CPU is used.
pub(super) fn waits_for_pages(facts: &Facts<'_>) -> bool {
    waited(facts) >= FAULT_SHARE_MIN
}

/// Threads wait while pages come: from a disk, or for the lock of the address space.
fn waiting(facts: &Facts<'_>, waited: f64, (rate, unit): (f64, &'static str)) -> Draft {
    let process = &facts.seen.process;
    let from_disk = process.major_faults > 0;
    let (from, next) = if from_disk {
        (
            " from a disk",
            "touch ahead (madvise WILLNEED, MAP_POPULATE), keep what is used in memory, or read with pread on threads beside",
        )
    } else {
        ("", "fewer mmap and munmap while others work: they hold the lock of the whole address space")
    };
    Draft::new(
        Class::PageFaults,
        waited,
        format!("{} of the working threads' time waits for pages{from}", percent(waited)),
    )
    .sure(Confidence::Medium)
    .fact(format!("{rate:.1} page faults {unit}, {} of them from a disk", process.major_faults), rate, unit)
    .next(next)
}

/// Memory is touched over more pages than the TLB reaches.
pub(super) fn tlb_reach(facts: &Facts<'_>) -> Outcome {
    let Some(memory) = &facts.seen.memory else {
        return Outcome::Unseen("the target's memory (smaps_rollup)");
    };
    let huge = memory.huge_bytes as f64 / memory.anonymous_bytes.max(1) as f64;
    let (mib, huge_text) = (memory.anonymous_bytes >> 20, percent(huge));
    if memory.anonymous_bytes < REACH_BYTES || huge >= HUGE_SHARE_MIN {
        return Outcome::Against(format!("{mib} MiB of memory, {huge_text} of it in huge pages"));
    }
    if facts.loops.is_empty() {
        return facts.no_loops(LOOP_SHARE_MIN, NO_CODE);
    }
    let scattered = |hot: &Hot<'_>| {
        matches!(hot.code.walk(), Walk::Scattered | Walk::Chase) && wide_reads(facts, hot).is_some()
    };
    let share = facts.loop_share(scattered);
    let Some(hottest) = facts.hottest(scattered).filter(|_| share >= LOOP_SHARE_MIN) else {
        let text = format!("{} of the samples lie in loops that jump all over its {mib} MiB", percent(share));
        return facts.short_of((share, LOOP_SHARE_MIN), NO_CODE, text);
    };
    Outcome::Found(
        Draft::new(Class::TlbReach, share, format!("{} of the CPU jumps all over {mib} MiB in pages of 4 KiB", percent(share)))
            .fact(format!("{huge_text} of its anonymous memory lies in huge pages; the machine's setting is {}", memory.huge_pages), huge, "share")
            .sign(wide_in_words(facts, hottest))
            .next("ask for huge pages: madvise(MADV_HUGEPAGE) on the large tables, or hugetlbfs; then pack what is used together")
            .at(Some(hottest.place()))
            .specimen("page-walk"),
    )
}

/// Sampled addresses of one of its reads that jump are wide when most lie in pages of their own and they span more than the TLB
/// reaches. What it reads in order besides lies elsewhere, and is no jump to there.
fn wide_reads(facts: &Facts<'_>, hot: &Hot<'_>) -> Option<Vec<u64>> {
    let places = hot.code.places_jumped();
    let mut each = places.into_iter().map(|place| reads_at(facts, hot, place));
    each.find(|addresses| is_spread(addresses.clone(), REACH_BYTES / 4))
}

/// Addresses that one instruction of its loop reads. Where too few are known at the hot one itself, those are taken besides that
/// are known at others of the loop.
fn reads_at(facts: &Facts<'_>, hot: &Hot<'_>, place: u64) -> Vec<u64> {
    let mut addresses = hot.code.reads_at(&hot.spot.seen, place);
    if addresses.len() < ADDRESSES_MIN {
        let others = facts.loops.iter().filter(|other| other.spot.address != hot.spot.address);
        addresses.extend(others.flat_map(|other| other.code.reads_at(&other.spot.seen, place)));
    }
    addresses
}

/// Whether its rows lie so far from each other that a column's lines push each other out of the caches next to a CPU.
fn takes_one_of_each_row(hot: &Hot<'_>) -> bool {
    is_spread(hot.code.reads_of_rows(&hot.spot.seen), ROWS_BYTES_MIN)
}

/// Whether all that it reads stays in the second cache, as far as that was seen.
fn is_narrow(facts: &Facts<'_>, hot: &Hot<'_>) -> bool {
    let all = hot.code.places_read().into_iter().flat_map(|place| reads_at(facts, hot, place));
    let (addresses, _, span) = spread(all.collect());
    addresses >= ADDRESSES_MIN && span < ROWS_BYTES_MIN
}

/// Whether it ends before it has met more lines than the first cache keeps: of a table that is gone through by tiles the next column
/// finds them there.
fn comes_back_soon(hot: &Hot<'_>) -> bool {
    let lines = hot.code.turns_left(&hot.spot.seen).map(|turns| turns * hot.code.places_read().len() as u64);
    let skipped = hot.code.skips(LINE_BYTES).filter(|bytes| bytes % LINE_BYTES == 0);
    // What lies a power of two apart shares few of its sets.
    let shared = skipped.map_or(0, |bytes| (bytes / LINE_BYTES).trailing_zeros());
    let kept = FIRST_CACHE_WAYS * (FIRST_CACHE_SETS >> shared).max(1) / 2;
    lines.is_some_and(|lines| lines <= kept)
}

fn is_spread(sampled: Vec<u64>, bytes_min: u64) -> bool {
    let (addresses, pages, span) = spread(sampled);
    addresses >= ADDRESSES_MIN && pages as f64 >= SCATTERED_MIN * addresses as f64 && span >= bytes_min
}

/// How many addresses were sampled, on how many pages, and over how many bytes; the outermost tenths are left out.
fn spread(mut addresses: Vec<u64>) -> (usize, usize, u64) {
    addresses.sort_unstable();
    let pages: BTreeSet<u64> = addresses.iter().map(|address| address >> 12).collect();
    let at = |tenths: usize| {
        addresses.get((addresses.len().saturating_sub(1)) * tenths / 10).copied().unwrap_or(0)
    };
    (addresses.len(), pages.len(), at(9).saturating_sub(at(1)))
}

fn wide_in_words(facts: &Facts<'_>, hot: &Hot<'_>) -> String {
    let (addresses, pages, span) = spread(wide_reads(facts, hot).unwrap_or_default());
    format!("{addresses} sampled addresses lay in {pages} pages, most of them within {} MiB", span >> 20)
}

/// Memory is touched in an order that caches dislike.
pub(super) fn cache_misses(facts: &Facts<'_>) -> Outcome {
    if facts.loops.is_empty() {
        return facts.no_loops(LOOP_SHARE_MIN, NO_CODE);
    }
    let strides = |hot: &Hot<'_>| hot.code.skips(LINE_BYTES).is_some() && !is_narrow(facts, hot);
    let steps_over = |hot: &Hot<'_>| strides(hot) || takes_one_of_each_row(hot);
    let skips = |hot: &Hot<'_>| steps_over(hot) && !comes_back_soon(hot);
    let share = facts.loop_share(skips);
    let near = || facts.loop_share(|hot| steps_over(hot) && comes_back_soon(hot));
    if let Some(near) = (share < LOOP_SHARE_MIN).then(near).filter(|near| *near >= LOOP_SHARE_MIN) {
        return Outcome::Against(format!(
            "{} of the samples lie in loops that step over cache lines, for so few turns that the first cache keeps them until they are needed again",
            percent(near)
        ));
    }
    let Some(hottest) = facts.hottest(skips).filter(|_| share >= LOOP_SHARE_MIN) else {
        let text = format!("{} of the samples lie in loops that step over cache lines", percent(share));
        return facts.short_of((share, LOOP_SHARE_MIN), NO_CODE, text);
    };
    let draft = match hottest.code.skips(LINE_BYTES) {
        Some(bytes) => Draft::new(Class::CacheMissesSuspected, share, format!("{} of the CPU steps through memory by {bytes} bytes", percent(share)))
            .fact(format!("the hot loop reads a number and goes on by {bytes} bytes: of each cache line of {LINE_BYTES} it uses one"), bytes as f64, "bytes"),
        None => {
            let (rows, pages, span) = spread(hottest.code.reads_of_rows(&hottest.spot.seen));
            Draft::new(Class::CacheMissesSuspected, share, format!("{} of the CPU takes one number of each row of a table", percent(share)))
                .sign(format!("the hot loop goes from row to row and stays in its column: {rows} sampled addresses lay in {pages} pages, most of them within {} MiB", span >> 20))
        }
    };
    Outcome::Found(
        draft
            .fact(format!("{} of the samples lie in such loops", percent(share)), share, "share")
            .sign("there is no counter of cache misses here: the order is seen, its price is not")
            .next("go through memory in the order in which it lies: swap the loops, or turn the table")
            .at(Some(hottest.place()))
            .specimen("column-order"),
    )
}

/// Threads write to the same cache line. Forks of one process have equal addresses and memory of their own, but for what
/// they share.
pub(super) fn false_sharing(facts: &Facts<'_>) -> Outcome {
    if facts.loops.is_empty() {
        return facts.no_loops(LOOP_SHARE_MIN, NO_CODE);
    }
    let stores = stores_by_line(facts);
    let shared: Lines<'_> = stores
        .iter()
        .filter(|(_, stores)| threads(stores).len() >= 2)
        .map(|(line, stores)| (*line, stores))
        .collect();
    let is_go = facts.seen.goroutines.is_some();
    let is_certain = |stores: &Stores| if is_go { is_shared_in_go(stores) } else { is_shared(stores) };
    let certain: Lines<'_> = shared
        .iter()
        .filter(|(_, stores)| is_certain(stores))
        .map(|(line, stores)| (*line, *stores))
        .collect();
    let unknown = if is_go {
        "Go's processors move from thread to thread, and what is theirs with them: whether two store at the same time is not to be seen"
    } else {
        "each of its words is stored to by several threads, without an atomic: who hands a thing on to another thread does so, too, and \
         whether two store at the same time is not to be seen"
    };
    match (shared_lines(facts, &certain), shared_lines(facts, &shared)) {
        (Outcome::Found(draft), _) => Outcome::Found(draft),
        (_, Outcome::Found(draft)) => Outcome::Noted(draft.sign(unknown)),
        (against, _) => against,
    }
}

/// Of a line's words that were seen to be stored to, those that one thread alone stores to, from which on each has its own.
const OWN_WORDS_MIN: f64 = 0.5;

/// Whether different threads share that line for certain: each has words of its own there, or says by an atomic that others store
/// there too. A thing that is handed on from thread to thread, under a lock or through a queue, has the same words for all.
fn is_shared(stores: &Stores) -> bool {
    let mut of_words = BTreeMap::<u64, BTreeSet<u32>>::new();
    for store in stores {
        of_words.entry(store.address).or_default().insert(store.tid);
    }
    let own = || of_words.values().filter(|tids| tids.len() == 1);
    let owners: BTreeSet<u32> = own().flatten().copied().collect();
    let own_words = owners.len() >= 2 && own().count() as f64 >= OWN_WORDS_MIN * of_words.len() as f64;
    own_words || stores.iter().any(|store| store.is_atomic)
}

/// Whether different goroutines share that line for certain: each has words of its own there, one instruction of the program's
/// own stores into several of its words (things that lie side by side), or it says by an atomic that others store there too.
/// One thing that is handed on, a buffer of a pool, has one word for each instruction.
fn is_shared_in_go(stores: &Stores) -> bool {
    let mut of_words = BTreeMap::<u64, BTreeSet<u64>>::new();
    for store in stores {
        of_words.entry(store.address).or_default().insert(store.goroutine);
    }
    let owners: BTreeSet<&BTreeSet<u64>> = of_words.values().collect();
    let own_words = of_words.len() >= 2
        && owners.len() == of_words.len()
        && of_words.values().all(|goroutines| goroutines.len() == 1);
    let mut of_places = BTreeMap::<u64, BTreeSet<u64>>::new();
    for store in stores.iter().filter(|store| store.is_own) {
        of_places.entry(store.place).or_default().insert(store.address);
    }
    let side_by_side = of_places.values().any(|words| words.len() >= 2);
    own_words || side_by_side || stores.iter().any(|store| store.is_own && store.is_atomic)
}

fn shared_lines(facts: &Facts<'_>, shared: &Lines<'_>) -> Outcome {
    // Where the address was computed further on in the same loop, it is known of samples there.
    let places: BTreeSet<u64> =
        shared.values().flat_map(|stores| stores.iter()).map(|store| store.place).collect();
    let in_shared = |hot: &Hot<'_>| {
        let stored = hot.code.stores(&hot.spot.seen);
        stored.iter().any(|(by, address)| shared.contains_key(&line(facts, by, *address)))
            || hot.code.unknown_stores().any(|place| places.contains(&place))
    };
    let share = facts.loop_share(in_shared);
    let (Some(hottest), Some((_, most))) = (
        facts.hottest(in_shared).filter(|_| share >= LOOP_SHARE_MIN),
        shared.iter().max_by_key(|(_, stores)| stores.len()),
    ) else {
        let text =
            format!("{} of the samples lie in loops that store where another thread stores", percent(share));
        return facts.short_of((share, LOOP_SHARE_MIN), NO_CODE, text);
    };
    let together = at_the_same_time(facts, &threads(most));
    if together < TOGETHER_MIN {
        return Outcome::Against(format!(
            "threads that store into one line run one after another: {together:.2} of them at a time"
        ));
    }
    let addresses: BTreeSet<u64> = most.iter().map(|store| store.address).collect();
    let what =
        if addresses.len() > 1 { "different words of one cache line" } else { "one and the same word" };
    Outcome::Found(
        Draft::new(Class::FalseSharingSuspected, share, format!("{} of the CPU stores into {what} from {} threads", percent(share), threads(most).len()))
            .sign(stores_in_words(most))
            .fact(format!("{} of the samples lie in loops that store into such lines", percent(share)), share, "share")
            .sign("there is no counter of lines that move between CPUs here: the stores are seen, their price is not")
            .next("give each thread's word a line for itself (align to 128 bytes: CPUs fetch lines in pairs), or count locally and add up rarely")
            .at(Some(hottest.place()))
            .specimen("false-sharing"),
    )
}

/// How many of these threads run at a time. Those that take turns, under a lock, hand a line on and share it with nobody.
pub(super) fn at_the_same_time(facts: &Facts<'_>, tids: &BTreeSet<u32>) -> f64 {
    let of_them = facts.seen.threads.iter().filter(|thread| tids.contains(&thread.tid));
    let crowd = facts.crowd();
    // What others keep from running would have run.
    let run: f64 = of_them.map(|thread| thread.run_ns as f64 + thread.wait_ns as f64 * crowd).sum();
    run / 1e9 / facts.seen.duration_s.max(1e-9)
}

/// A store that was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Store {
    tid: u32,
    address: u64,
    /// In a Go program, who ran on the thread: its run-time keeps the goroutine's record in r14 on this machine.
    goroutine: u64,
    /// The instruction.
    place: u64,
    /// It is no part of Go's own code.
    is_own: bool,
    /// Its loop has an atomic.
    is_atomic: bool,
}

/// The place of r14 among the registers.
const R14: usize = 14;

/// Code of Go's that works on what belongs to a processor.
const OF_PROCESSORS: &[&str] = &["runtime.*", "sync.*", "sync/*", "internal/*"];

type Stores = BTreeSet<Store>;

/// Cache lines and who stores into them.
type Lines<'s> = BTreeMap<Line, &'s Stores>;

/// A cache line: of one process, or none where the memory is shared by several.
pub(super) type Line = (Option<u32>, u64);

pub(super) fn line(facts: &Facts<'_>, by: &Registers, address: u64) -> Line {
    let is_shared = facts.seen.shared.iter().any(|[start, end]| (*start..*end).contains(&address));
    ((!is_shared).then_some(by.pid), address / LINE_BYTES)
}

/// Threads and addresses by cache line, over all loops that work; those that only wait are another rule's.
fn stores_by_line(facts: &Facts<'_>) -> BTreeMap<Line, Stores> {
    let mut lines = BTreeMap::<Line, Stores>::new();
    for hot in facts.loops.iter().filter(|hot| !hot.code.only_waits()) {
        let is_own = !names::is(&hot.spot.function, OF_PROCESSORS);
        let is_atomic = hot.code.is_atomic();
        for (by, address, place) in hot.code.stores_by_place(&hot.spot.seen) {
            let store = Store { tid: by.tid, address, goroutine: by.values[R14], place, is_own, is_atomic };
            lines.entry(line(facts, by, address)).or_default().insert(store);
        }
    }
    lines
}

fn threads(stores: &Stores) -> BTreeSet<u32> {
    stores.iter().map(|store| store.tid).collect()
}

fn stores_in_words(stores: &Stores) -> String {
    let each: BTreeSet<(u32, u64)> = stores.iter().map(|store| (store.tid, store.address)).collect();
    let some: Vec<String> =
        each.iter().take(4).map(|(tid, address)| format!("thread {tid} at {address:#x}")).collect();
    format!("sampled stores: {}", some.join(", "))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use dyno_record::finding::Class;
    use dyno_record::observation::{Memory, Registers};
    use dyno_record::profile::{Frame, Origin, Stack, Thread, WaitClass};

    use crate::scene::{COLUMNS, COUNT, ROWS, Scene, WALK, registers};

    /// `mov $1000,%edx; 1: lock incq (%rdi); sub $1,%edx; jne 1b; ret`, seen at the subtraction.
    const ATOMIC: (&str, u64) = ("bae8030000f048ff0783ea0175f7c3", 0x9);

    /// A program in a container whose limit is too small for the files that it reads. Planted faults: it is in files, or in calls
    /// (`RECLAIM` not known to `cost`); buffers are advised on.
    #[test]
    fn who_looks_for_pages_to_take_back_is_short_of_memory() {
        let read = "main;read;do_syscall_64_[k];vfs_read_[k];filemap_read_[k];__filemap_add_folio_[k];try_to_free_mem_cgroup_pages_[k];\
                    shrink_lruvec_[k]";
        let scene = |hundredths| Scene::new(&[9.0]).on("main;work", 100 - hundredths).on(read, hundredths);
        let found = scene(40).diagnosed().findings.remove(0);
        assert_eq!(found.class, Class::PageFaults);
        assert!(found.next[0].text.starts_with("a larger limit of memory"), "{:?}", found.next);
        assert!(found.evidence.iter().any(|fact| fact.text.starts_with("40 % of the CPU looks for pages")));
        assert_eq!(scene(14).classes(), []);
    }

    #[test]
    fn a_large_table_in_small_pages_is_beyond_the_tlb_and_huge_pages_cure_it() {
        let scattered = (0..32_u64)
            .map(|at| registers(1, 0x7000_0000, at.wrapping_mul(0x9e37_79b9) % (160 << 20)))
            .collect::<Vec<_>>();
        let table = |huge: u64| {
            Scene::new(&[10.0]).on("main;work", 100).hot(WALK, 0.7, scattered.clone()).with(|seen| {
                seen.memory = Some(Memory {
                    rss_bytes: 1280 << 20,
                    anonymous_bytes: 1280 << 20,
                    huge_bytes: huge,
                    huge_pages: "madvise".into(),
                });
            })
        };
        assert_eq!(table(0).classes(), [Class::TlbReach]);
        assert_eq!(table(1278 << 20).classes(), []);
    }

    /// A loop whose process has ended, or the code of which is gone. Planted faults: what could not be read lies in no tight loop
    /// (`unread` of 0); however little it is, nothing was seen.
    #[test]
    fn code_that_could_not_be_read_is_not_seen() {
        let gone = |share: f64, read: f64| {
            let scene = Scene::new(&[10.0]).on("main;work", 100).hot(("", 0), share, vec![]);
            scene.hot(ROWS, read, vec![]).diagnosed()
        };
        let is_unseen = |share, read| {
            let said = gone(share, read);
            let mut unseen = said.not_looked_at.iter().filter(|one| one.why.contains("hot instructions"));
            unseen.any(|one| one.what == Class::CacheMissesSuspected.name())
        };
        assert!(is_unseen(0.35, 0.0) && is_unseen(0.35, 0.6));
        assert!(!is_unseen(0.1, 0.6));
        let out = gone(0.1, 0.6).ruled_out.into_iter().find(|out| out.class == Class::Spinning).unwrap();
        assert!(out.by.starts_with("0.0 % of the CPU only looks and waits"), "{out:?}");
        assert_eq!(gone(0.25, 0.6).ruled_out.iter().filter(|out| out.class == Class::Spinning).count(), 0);
    }

    /// `mov %rax,%rdx; add %r9,%rax; and $mask,%edx; mov (%r13,%rdx,8),%rdx; xor %rdx,%rsi; dec %edi; jne`, seen behind the load
    /// and now and then at it. Planted fault: what was loaded passes for addresses (`address` in place of `address_read`).
    #[test]
    fn values_that_were_read_from_a_small_table_are_no_addresses_all_over_memory() {
        let table = |mask: &str, behind: u64| {
            let code = format!("4889c24c01c881e2{mask}498b54d5004831d6ffcf75e8");
            let seen = (0..32_u64).map(|at| {
                let mut one = registers(1, 4, at.wrapping_mul(0x9e37_79b9_7f4a_7c15));
                one.values[0] = at.wrapping_mul(0x7fb5_d329_728e_a185);
                one.values[9] = 0x7fb5_d329_728e_a185;
                one.values[13] = 0x7000_0000;
                one
            });
            Scene::new(&[10.0]).on("main;work", 100).hot((&code, behind), 0.7, seen.collect()).with(|seen| {
                seen.memory = Some(Memory {
                    rss_bytes: 1280 << 20,
                    anonymous_bytes: 1280 << 20,
                    huge_bytes: 0,
                    huge_pages: "madvise".into(),
                });
            })
        };
        assert_eq!(table("ff030000", 0x11).classes(), [], "8 KiB");
        assert_eq!(table("ffffff07", 0x11).classes(), [Class::TlbReach], "1 GiB");
    }

    /// `mov (%rdi,%rsi,8),%rcx; mov (%rcx),%rcx; xor %rcx,%rax; inc %rsi; dec %edx; jne`: objects by a list. Planted
    /// faults: only the hot instruction's own samples are looked at; the list's own addresses count with the objects'.
    #[test]
    fn an_address_that_is_gone_is_known_where_the_same_loop_was_seen_before_its_load() {
        const OBJECTS: &str = "488b0cf7488b094831c848ffc6ffca75ef";
        let seen = |wide: u64| {
            let one = move |at: u64| {
                let mut one = registers(1, 0x1000, 5);
                one.values[4] = at * 1_000;
                one.values[2] = 0x7000_0000 + at.wrapping_mul(0x9e37_79b9) % wide;
                one
            };
            (0..32_u64).map(one).collect::<Vec<_>>()
        };
        let objects = |at_load: u64| {
            let scene = Scene::new(&[10.0]).on("main;work", 100).hot((OBJECTS, 0x7), 0.7, seen(1 << 40));
            let scene = scene.hot((OBJECTS, 0x4), 0.1, seen(at_load)).with(|seen| {
                seen.memory = Some(Memory {
                    rss_bytes: 1280 << 20,
                    anonymous_bytes: 1280 << 20,
                    huge_bytes: 0,
                    huge_pages: "madvise".into(),
                });
                seen.hot[1].code_at = seen.hot[0].code_at;
                seen.hot[1].address = seen.hot[0].code_at + 0x4;
            });
            scene.classes()
        };
        assert_eq!(objects(1 << 30), [Class::TlbReach]);
        assert_eq!(objects(1 << 20), []);
    }

    /// As `make` compiles many small files. Planted fault: only what fork copies is a child's (`by_new` false).
    #[test]
    fn pages_of_many_processes_that_begin_meanwhile_are_their_number() {
        let advised = |pids: u32| {
            let mut scene = Scene::new(&[0.1]);
            for pid in 1_000..1_000 + pids {
                let profile = scene.seen.on_cpu.as_mut().unwrap();
                profile.threads.push(Thread { pid, tid: pid, name: "cc1".into() });
                let thread = profile.threads.len() as u32 - 1;
                scene = scene.on("main;work", 60).on("main;touch;asm_exc_page_fault_[k];clear_page_[k]", 30);
                for stack in scene.seen.on_cpu.as_mut().unwrap().stacks.iter_mut().rev().take(3) {
                    stack.thread = thread;
                }
            }
            let said = scene.with(|seen| seen.process.cpu_ns = 10_000_000_000).diagnosed();
            let finding = said.findings.iter().find(|one| one.class == Class::PageFaults).unwrap();
            (finding.next[0].text.starts_with("fewer children"), format!("{finding:?}"))
        };
        let (children, text) = advised(20);
        assert!(children && text.contains("is in 20 processes that began meanwhile"), "{text}");
        assert!(!advised(3).0, "a few workers that began late");
    }

    #[test]
    fn address_spaces_that_are_copied_for_children_are_told_as_forks() {
        let scene = Scene::new(&[9.0]).on("main;fork;kernel_clone_[k];dup_mmap_[k]", 60).on("main;work", 40);
        assert_eq!(scene.classes(), [Class::PageFaults]);
        let found = scene.diagnosed();
        assert!(found.findings[0].next[0].text.contains("posix_spawn"), "{found:?}");
    }

    #[test]
    fn columns_miss_the_cache_and_rows_do_not() {
        let table = |code| Scene::new(&[10.0]).on("main;work", 100).hot(code, 0.9, vec![]).classes();
        assert_eq!(table(COLUMNS), [Class::CacheMissesSuspected]);
        assert_eq!(table(ROWS), []);
    }

    /// Bodies of a simulation, one after another. Planted fault: however few they are (`is_narrow` that is never so).
    #[test]
    fn steps_over_lines_of_a_table_that_fits_the_second_cache_miss_nothing() {
        let table = |bytes: u64| {
            let held = |at: u64| {
                let mut values = [0; 16];
                values[0] = 0x7000_0000 + at * bytes / 32;
                Registers { tid: 1, pid: 1, values }
            };
            let seen = (0..32).map(held).collect::<Vec<_>>();
            Scene::new(&[10.0]).on("main;work", 100).hot(COLUMNS, 0.9, seen).classes()
        };
        assert_eq!((table(64 << 20), table(1 << 20)), (vec![Class::CacheMissesSuspected], vec![]));
    }

    /// A column of a tile (32 turns), of a whole table, and of a tile of rows that lie 4 KiB apart. `mov rcx,[rdi]; add rax,rcx; add rdi,N;
    /// cmp rdi,rsi; jne`. Planted faults: however long it goes on; every line has a place of its own.
    #[test]
    fn a_column_of_a_tile_comes_back_before_its_lines_are_gone() {
        let column = |bytes: u32, turns: u64| {
            let step: String = bytes.to_le_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
            let code = format!("488b0f4801c84881c7{step}4839f775ee");
            let seen = (0..32_u64).map(|at| {
                let tile = 0x7f00_0000_0000 + at * (1 << 20);
                let mut seen = registers(1, tile + at * turns / 32 * u64::from(bytes), 0x9000);
                seen.values[4] = tile + turns * u64::from(bytes);
                seen
            });
            Scene::new(&[10.0]).on("main;work", 100).hot((&code, 3), 0.9, seen.collect()).diagnosed()
        };
        let classes =
            |bytes, turns| column(bytes, turns).findings.iter().map(|one| one.class).collect::<Vec<_>>();
        assert_eq!(classes(16_000, 32), []);
        let out = column(16_000, 32).ruled_out;
        let why = out.iter().find(|out| out.class == Class::CacheMissesSuspected).unwrap();
        assert!(why.by.contains("for so few turns"), "{why:?}");
        assert_eq!(classes(16_000, 2_000), [Class::CacheMissesSuspected]);
        assert_eq!(classes(4_096, 32), [Class::CacheMissesSuspected], "all of them want one place");
    }

    /// Rows that lie 16 KB apart, or next to each other. Planted fault: however near they lie (`ROWS_BYTES_MIN` of 0).
    #[test]
    fn one_number_of_each_row_misses_the_cache_where_the_rows_are_many() {
        const COLUMN: (&str, u64) = ("488b074883c708f20f5804304839fa75ef", 0xc);
        let table = |row_bytes: u64| {
            let seen = (0..1_000_u64).step_by(31).map(|row| {
                let mut seen = registers(1, 0x1000 + 8 * row, 0x9000);
                seen.values[0] = 0x7f00_0000 + row * row_bytes;
                seen
            });
            Scene::new(&[10.0]).on("main;work", 100).hot(COLUMN, 0.9, seen.collect()).classes()
        };
        assert_eq!(table(16 << 10), [Class::CacheMissesSuspected]);
        assert_eq!(table(1 << 10), []);
    }

    /// Most samples fall where the store's address is no longer known. Planted fault: only loops in which it is known count.
    #[test]
    fn the_loop_around_a_store_counts_wherever_in_it_samples_fall() {
        const CODE: &str = "488b07488304f001b80500000083ea0175ee";
        let line = |distance: u64| {
            let of = |tid: u32, address: u64| {
                let mut seen = registers(tid, 0x1000, 0x9000);
                seen.values[0] = address;
                seen
            };
            let seen: Vec<Registers> =
                (0..8).flat_map(|_| [of(1, 0x1000), of(2, 0x1000 + distance)]).collect();
            let mut scene = Scene::new(&[10.0, 10.0]).on("run;work", 100);
            scene = scene.hot((CODE, 0xd), 0.5, seen.clone()).hot((CODE, 0x3), 0.05, seen);
            scene.seen.hot[1].code_at = scene.seen.hot[0].code_at;
            scene.seen.hot[1].address = scene.seen.hot[0].code_at + 0x3;
            scene.classes()
        };
        assert_eq!(line(8), [Class::FalseSharingSuspected]);
        assert_eq!(line(128), []);
    }

    /// Planted faults: threads count as processes; a stack that was sampled and of which no frame is known counts.
    #[test]
    fn children_that_are_too_short_to_be_sampled_are_told_by_their_time() {
        let children = |seconds: u64, is_process: bool, samples: u64| {
            Scene::new(&[9.0]).on("main;work", 500).with(|seen| {
                let Some(profile) = &mut seen.on_cpu else { return };
                let (frame, thread) = (profile.frames.len() as u32, profile.threads.len() as u32);
                let name = "[ended before a sample]".to_owned();
                profile.frames.push(Frame { name, origin: Origin::Mark, ..Frame::default() });
                let pid = if is_process { 77 } else { 1 };
                profile.threads.push(Thread { pid, tid: 77, name: "cut".into() });
                let weight_ns = seconds * 1_000_000_000;
                profile.stacks.push(Stack {
                    frames: vec![frame],
                    thread,
                    weight_ns,
                    samples,
                    ..Stack::default()
                });
            })
        };
        let forks = children(5, true, 0);
        assert_eq!(forks.classes(), [Class::PageFaults]);
        assert!(forks.diagnosed().findings[0].summary.contains("children"));
        assert_eq!(children(1, true, 0).classes(), []);
        assert_eq!(children(5, false, 0).classes(), [], "a thread for each request");
        assert_eq!(children(5, true, 500).classes(), [], "it was seen, and its frames were not");
    }

    #[test]
    fn stores_of_two_threads_into_one_line_are_false_sharing() {
        let stores = |distance: u64| {
            let seen =
                (0..8).flat_map(|_| [registers(1, 0x1000, 0), registers(2, 0x1000 + distance, 0)]).collect();
            Scene::new(&[10.0, 10.0]).on("run;work", 100).hot(COUNT, 0.5, seen).classes()
        };
        assert_eq!(stores(8), [Class::FalseSharingSuspected]);
        assert_eq!(stores(128), []);
    }

    /// The state of a stream that a pool's threads work on one after another. Planted fault: whatever several threads store to is
    /// shared (`is_shared` that is always true).
    #[test]
    fn what_is_handed_on_from_thread_to_thread_is_a_note() {
        let stores = |code: (&str, u64), of: [(u32, u64); 4]| {
            let seen = (0..8).flat_map(|_| of.map(|(tid, address)| registers(tid, address, 0))).collect();
            let said = Scene::new(&[10.0, 10.0]).on("run;work", 100).hot(code, 0.5, seen).diagnosed();
            let noted = said.notes.iter().any(|note| note.class == Class::FalseSharingSuspected);
            (said.findings.iter().map(|found| found.class).collect::<Vec<_>>(), noted)
        };
        let handed_on = [(1, 0x1000), (2, 0x1000), (1, 0x1008), (2, 0x1008)];
        let own_words = [(1, 0x1000), (2, 0x1008), (1, 0x1000), (2, 0x1008)];
        let mostly = [(1, 0x1000), (2, 0x1008), (1, 0x1010), (2, 0x1010)];
        assert_eq!(stores(COUNT, handed_on), (vec![], true));
        let found = (vec![Class::FalseSharingSuspected], false);
        assert_eq!(stores(COUNT, own_words), found);
        assert_eq!(stores(COUNT, mostly), found, "and a word of both beside");
        assert_eq!(stores(ATOMIC, handed_on), found);
    }

    /// A log that is mapped anew as it grows. Planted fault: malloc's settings whatever the pages are of.
    #[test]
    fn pages_of_mapped_files_are_no_matter_of_malloc() {
        let advised = |stack: &str| {
            let scene = Scene::new(&[9.0, 9.0]).on("main;work", 60).on(stack, 30);
            let scene = scene.on("main;munmap;__x64_sys_munmap_[k];unmap_region_[k]", 10);
            scene.diagnosed().findings.remove(0).next.remove(0).text
        };
        let file = "main;put;asm_exc_page_fault_[k];do_fault_[k];__do_fault_[k];filemap_fault_[k]";
        assert!(advised(file).contains("keep the map"));
        assert!(
            advised("main;put;asm_exc_page_fault_[k];do_anonymous_page_[k]").contains("M_MMAP_THRESHOLD")
        );
    }

    /// Planted faults: Go's own atomics are the program's (`is_own` always true); one word is side by side; in Go nothing is
    /// certain.
    #[test]
    fn what_belongs_to_a_processor_of_gos_moves_from_thread_to_thread_and_is_not_shared() {
        let stores = |code, function: &str, of: [(u32, u64, u64); 4]| {
            let seen = (0..8).flat_map(|_| {
                of.map(|(tid, address, goroutine)| {
                    let mut by = registers(tid, address, 0);
                    by.values[super::R14] = goroutine;
                    by
                })
            });
            let scene = Scene::new(&[10.0, 10.0]).on("run;work", 100).hot(code, 0.5, seen.collect());
            let said = scene.with(|seen| {
                seen.goroutines = Some(dyno_record::observation::Goroutines::default());
                seen.hot[0].function = function.to_owned();
            });
            let said = said.diagnosed();
            let noted = said.notes.iter().any(|note| note.class == Class::FalseSharingSuspected);
            (said.findings.iter().map(|found| found.class).collect::<Vec<_>>(), noted)
        };
        let moved = [(1, 0x1000, 7), (2, 0x1000, 8), (1, 0x1008, 8), (2, 0x1008, 7)];
        let one_word = [(1, 0x1000, 7), (2, 0x1000, 8), (1, 0x1000, 8), (2, 0x1000, 7)];
        let own_words = [(1, 0x1000, 7), (2, 0x1008, 8), (2, 0x1000, 7), (1, 0x1008, 8)];
        assert_eq!(stores(COUNT, "sync.(*Pool).Get", moved), (vec![], true));
        let found = (vec![Class::FalseSharingSuspected], false);
        assert_eq!(stores(COUNT, "sync.(*Pool).Get", own_words), found, "each has its own");
        assert_eq!(stores(COUNT, "main.count", moved), found, "things that lie side by side");
        assert_eq!(stores(COUNT, "main.work", one_word), (vec![], true));
        assert_eq!(stores(COUNT, "main.work", own_words), found);
        assert_eq!(stores(ATOMIC, "main.count", one_word), found);
        assert_eq!(stores(ATOMIC, "sync.(*poolDequeue).pushHead", one_word), (vec![], true));
    }

    #[test]
    fn equal_addresses_of_two_processes_are_one_line_only_where_they_share_that_memory() {
        let stores = |shared: &[[u64; 2]]| {
            let other = Registers { pid: 2, ..registers(2, 0x1008, 0) };
            let seen = (0..8).flat_map(|_| [registers(1, 0x1000, 0), other.clone()]).collect();
            let scene = Scene::new(&[10.0, 10.0]).on("run;work", 100).hot(COUNT, 0.5, seen);
            scene.with(|seen| seen.shared = shared.to_vec()).classes()
        };
        assert_eq!(stores(&[]), [], "a fork has the addresses of its parent and memory of its own");
        assert_eq!(stores(&[[0x1000, 0x2000]]), [Class::FalseSharingSuspected]);
    }

    #[test]
    fn waits_for_the_lock_of_the_address_space_are_waits_for_pages_and_no_lock_of_the_program() {
        let waits = |entry: &str| {
            let stack = format!("run;work;{entry};rwsem_down_read_slowpath_[k]");
            let scene = Scene::new(&[2.0, 2.0]).on("run;work", 100);
            let scene = scene.off(1, WaitClass::Lock, &stack, 7.0).woken("a lock", 2, &stack);
            scene.off(2, WaitClass::Lock, &stack, 7.0).woken("a lock", 1, &stack)
        };
        let finding = waits("exc_page_fault_[k];do_user_addr_fault_[k]").diagnosed().findings.remove(0);
        assert_eq!(finding.class, Class::PageFaults);
        let next = &finding.next[0].text;
        assert!(next.contains("fewer mmap and munmap"), "{next}");
        assert_eq!(waits("sys_other_[k]").classes(), [Class::LockContention]);
    }

    #[test]
    fn waits_for_pages_from_a_disk_are_named_so() {
        let cold = Scene::new(&[1.0])
            .on("main;look_up", 100)
            .off(1, WaitClass::PageFault, "main;look_up;exc_page_fault_[k];filemap_fault_[k]", 8.0)
            .with(|seen| seen.process.major_faults = 9_000);
        let finding = cold.diagnosed().findings.remove(0);
        assert_eq!(finding.class, Class::PageFaults);
        assert!(finding.summary.contains("waits for pages from a disk"), "{}", finding.summary);
    }
}
