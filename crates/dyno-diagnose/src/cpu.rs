//! Rules for CPU time in the program itself: one place, memory taken and given back, copies, numbers made into text.

use dyno_record::finding::{Class, Confidence};

use super::code::Walk;
use super::draft::{Draft, Outcome, percent, places};
use super::facts::{Cost, Facts, TopOfThread};
use super::goroutines::{WAITING_MIN, at_collector};
use super::names;
use super::one_call;
use super::scans;

/// A quarter of the CPU: halving it brings an eighth more, which is worth a change of code.
const WORK_SHARE_MIN: f64 = 0.25;
/// Half of the CPU in one place.
const HOT_SHARE_MIN: f64 = 0.50;
/// One function so large that nothing else in its thread is worth a change: ten times less of it is nearly ten times as fast.
const ONE_FUNCTION_MIN: f64 = 0.90;
/// Of a thread's time, what the C library's comparisons must take for a function without a name to be a search.
const COMPARES_MIN: f64 = 0.25;
/// Less is not worth a word.
const COMPARED_TOLD_MIN: f64 = 0.05;
/// Nothing else is there.
const ALL_OF_IT: f64 = 0.95;
/// A thread that runs less waits for something as well.
const BUSY_MIN: f64 = 0.80;
/// Goroutine stacks that grow again and again: each growth copies all there is, so a tenth is much.
const GROWTH_SHARE_MIN: f64 = 0.10;

/// A program that does nothing but take memory and give it back measures its allocator: there is no work that less of it
/// would speed up.
const NOTHING_ELSE: f64 = 0.85;

/// Of what memory takes, the collectors' part from which on it is their work: no program is there to collect.
const COLLECTED_MIN: f64 = 0.5;

/// One place takes the CPU, and its code shows how the time is lost.
pub(super) fn user_hot_spot(facts: &Facts<'_>) -> Outcome {
    let Some(on) = &facts.on else { return facts.no_profile() };
    let reads = scans::whole_tables(facts).or_else(|| scans::whole_lists(on)).or_else(|| search(facts));
    if let Some(draft) = reads.or_else(|| reads_clock(on)) {
        return Outcome::Found(draft);
    }
    if let Some(draft) = one_function(facts, on).or_else(|| one_call(facts)) {
        return if is_shared_out(facts, on) || streams(facts) {
            Outcome::Noted(draft)
        } else {
            Outcome::Alone(draft)
        };
    }
    let top = on.top_function();
    match top {
        Some((place, share)) if share >= HOT_SHARE_MIN && names::is(&place, names::INTERPRETER) => Outcome::Noted(
            Draft::new(Class::UserHotSpot, share, format!("{place}, an interpreter, takes {} of the CPU", percent(share)))
                .sure(Confidence::Low)
                .sign("which of the program's functions it runs does not show in its own code")
                .next("let the interpreter name them: python -X perf (from 3.12 on), node --perf-basic-prof"),
        ),
        Some((place, share)) if share >= HOT_SHARE_MIN => Outcome::Noted(
            Draft::new(Class::UserHotSpot, share, format!("{place} takes {} of the CPU", percent(share)))
                .sure(Confidence::Low)
                .sign("its code shows neither waiting nor a walk: whether it could do with less, its author knows")
                .next("look at its place in a flame graph: dyno profile")
                .at(Some(place)),
        ),
        Some((place, share)) => {
            let text = format!(
                "the hottest function, {place}, takes {} of the CPU; {} goes from node to node",
                percent(share),
                percent(facts.loop_share(chases))
            );
            Outcome::near(&[(facts.loop_share(chases), HOT_SHARE_MIN)], text)
        }
        None => Outcome::Against("no user function was seen running".to_owned()),
    }
}

/// The clock is read again and again: what it says is the same for a thousand reads.
fn reads_clock(on: &super::facts::OnCpu<'_>) -> Option<Draft> {
    let next =
        "read it once for a turn, a batch or a hundred items, or a coarse clock (CLOCK_MONOTONIC_COARSE)";
    scans::spent_in(on, names::READS_CLOCK, WORK_SHARE_MIN, "reads the clock", next)
}

/// Threads that run for so much of the time work beside the busiest: more of them than CPUs take turns.
const BESIDE_MIN: f64 = 0.40;

/// Whether several threads do nothing but run one function: its work is shared out already, and may be what the program is for.
fn is_shared_out(facts: &Facts<'_>, on: &super::facts::OnCpu<'_>) -> bool {
    let busy = facts.seen.threads.iter().filter(|thread| facts.runs(thread) >= BUSY_MIN).count();
    if busy > 1 && on.top_function().is_some_and(|(_, share)| share >= ONE_FUNCTION_MIN) {
        return true;
    }
    let beside = facts.seen.threads.iter().filter(|thread| facts.runs(thread) >= BESIDE_MIN);
    let places = beside.filter_map(|thread| on.top_function_of(thread.tid));
    let all: Vec<String> = places.filter(|top| top.share >= ONE_FUNCTION_MIN).map(|top| top.place).collect();
    all.iter().enumerate().any(|(at, place)| all[..at].contains(place))
}

/// Bytes that it reads or writes for each second of its CPU time from which on each costs so little that it is touched a few times
/// only: a search that grows with what there is would be slower.
const STREAMED_PER_CPU_S: f64 = 50e6;

/// Whether bytes run through it: a checksum, a codec. How long that takes is for the bytes to say.
fn streams(facts: &Facts<'_>) -> bool {
    let process = &facts.seen.process;
    let most = [process.reads, process.writes].into_iter().flatten().map(|moved| moved.bytes).max();
    most.unwrap_or(0) as f64 >= STREAMED_PER_CPU_S * (process.cpu_ns as f64 / 1e9).max(0.1)
}

/// One function of the program is all that a thread does which runs all the time.
fn one_function(facts: &Facts<'_>, on: &super::facts::OnCpu<'_>) -> Option<Draft> {
    let (thread, run) = facts.busiest().filter(|(_, run)| *run >= BUSY_MIN)?;
    let TopOfThread { place, share, compares } = on.top_function_of(thread.tid)?;
    let others = [names::INTERPRETER, names::COPY, names::ALLOCATOR, names::FORMAT, names::ACQUIRE];
    // One without a name may be an interpreter's loop, but for one that does little else than compare.
    let is_nameless = place.starts_with("0x") || place.contains("!0x");
    let is_unknown = is_nameless && compares < COMPARES_MIN;
    // A whole program that its compiler folded into its first function is no place in it.
    let is_all = names::is(place.split(" (").next().unwrap_or_default(), names::FIRST);
    if share < ONE_FUNCTION_MIN || is_unknown || is_all || others.iter().any(|table| names::is(&place, table))
    {
        return None;
    }
    let sure = if share >= ALL_OF_IT { Confidence::Medium } else { Confidence::Low };
    let of_all = on.top_function().map_or(0.0, |(_, share)| share);
    let compared = (compares >= COMPARED_TOLD_MIN).then(|| {
        format!(
            "{} of it is in functions of the C library by which it compares or searches",
            percent(compares / share)
        )
    });
    let summary =
        format!("{place} is {} of what thread {} ({}) does", percent(share), thread.tid, thread.name);
    Some(
        Draft::new(Class::UserHotSpot, share * run.min(1.0), summary)
            .sure(sure)
            .fact(format!("the thread runs {} of the time", percent(run)), run, "share of the time")
            .sign_if(compared)
            .fact(format!("the hottest function takes {} of the CPU in all", percent(of_all)), of_all, "share")
            .sign("its code shows neither waiting nor a walk: whether it could do with less, its author knows")
            .next("do less in it: keep results, ask for less, a better algorithm; or share its work out over threads")
            .at(Some(place)),
    )
}

/// One call of the program, to an interpreter's built-in function or to a library, is all that such a thread does.
fn one_call(facts: &Facts<'_>) -> Option<Draft> {
    let (thread, run) = facts.busiest().filter(|(_, run)| *run >= BUSY_MIN)?;
    let call = one_call::of_thread(facts.seen.on_cpu.as_ref()?, thread.tid)?;
    let summary = format!(
        "{} with what it calls is {} of what thread {} ({}) does",
        call.place,
        percent(call.share),
        thread.tid,
        thread.name
    );
    Some(
        Draft::new(Class::UserHotSpot, call.share * run.min(1.0), summary)
            .sure(Confidence::Low)
            .fact(format!("the thread runs {} of the time", percent(run)), run, "share of the time")
            .sign_if(call.by.map(|(name, part)| format!("{} is in {name}, which it calls", percent(part))))
            .sign_if(call.nameless.map(|file| format!("debug symbols of {file} would give it its name")))
            .sign("whether it is asked for more than is needed, who calls it knows")
            .next("if more is asked than is needed, ask it for less, or seldom: an index or a set in place of a search, a key that is made once in place of a comparison each time, growing in place of copying")
            .at(Some(call.place)),
    )
}

fn chases(hot: &super::facts::Hot<'_>) -> bool {
    hot.code.walk() == Walk::Chase
}

/// The CPU goes from node to node and compares: a search that a better index would not make.
fn search(facts: &Facts<'_>) -> Option<Draft> {
    let share = facts.loop_share(chases);
    let hottest = facts.hottest(chases).filter(|_| share >= HOT_SHARE_MIN)?;
    let draft = Draft::new(Class::UserHotSpot, share, format!("{} of the CPU goes from node to node in {}", percent(share), hottest.place()))
        .sign("in its loop the address of the next look stands in what the last look found: a list or a tree is walked")
        .fact(format!("{} of the samples lie in that loop and what it calls", percent(share)), share, "share")
        .next("an index that needs fewer steps: a hash table where order does not matter, wider nodes where it does")
        .at(Some(hottest.place()))
        .specimen("tree-index");
    Some(draft)
}

/// Why rules that know functions by name do not answer.
pub(super) const NO_NAMES: &str = "names: most of the CPU time lies in code that has none, stripped or compiled at run time \
                        (dyno profile says how to get them)";

/// malloc and free take the CPU.
pub(super) fn allocation_churn(facts: &Facts<'_>) -> Outcome {
    let Some(on) = &facts.on else { return facts.no_profile() };
    let (churn, growth) = (on.share(&[Cost::Allocation]), on.share(&[Cost::StackGrowth]));
    if growth >= GROWTH_SHARE_MIN && growth >= churn {
        return Outcome::Found(growth_draft(facts, growth));
    }
    if churn < WORK_SHARE_MIN && on.lacks_names() {
        return Outcome::Unseen(NO_NAMES);
    }
    if churn < WORK_SHARE_MIN {
        let text = format!("{} of the CPU takes memory and gives it back", percent(churn));
        return Outcome::near(&[(churn, WORK_SHARE_MIN)], text);
    }
    let by = on.places(&[Cost::Allocation]);
    let (next, asked) = collections(on, churn);
    let draft = Draft::new(
        Class::AllocationChurn,
        churn,
        format!("{} of the CPU takes memory and gives it back", percent(churn)),
    )
    .sure(sureness(churn))
    .fact(
        format!("in {}", on.seen_of(names::ALLOCATOR).into_iter().take(4).collect::<Vec<_>>().join(", ")),
        churn,
        "share",
    )
    .sign_if(asked)
    .sign_if(waits_for_collector(facts))
    .sign_if(places(&by))
    .next(next)
    .rung("borrowed-headers")
    .at(by.first().map(|place| place.0.clone()))
    .specimen("allocation-churn");
    // An interpreter that runs a program does something else: what takes all of its time to make things collects them.
    let collected = on.share_of_collectors().max(on.share_below(names::INTERPRETER, names::HEAPS));
    let nothing_else = churn >= NOTHING_ELSE && collected < COLLECTED_MIN * churn;
    // Each row that is read takes memory.
    if nothing_else || scans::whole_tables(facts).is_some() {
        Outcome::Noted(draft)
    } else {
        Outcome::Found(draft)
    }
}

/// Of what memory takes, that part in which a collection was asked for from which on it is what is told.
const ASKED_MIN: f64 = 0.05;

const LESS: &str = "keep buffers and reuse them, reserve what is needed at once, borrow instead of owning; where a collector takes the \
     time, a larger heap lets it run less often";
const NOT_ASKED: &str = "leave the calls out that ask for collections (System.gc(), runtime.GC, gc.collect, GC.start): the collector knows \
     when it has to run; in Java -XX:+DisableExplicitGC makes them do nothing";

/// What to do, and what it rests on: a program that asks for collections has them, however large its heap is.
fn collections(on: &super::facts::OnCpu<'_>, churn: f64) -> (&'static str, Option<String>) {
    let asked = on.share_with(names::ASKS_TO_COLLECT);
    if asked < ASKED_MIN * churn || on.share_of_collectors().max(asked) < COLLECTED_MIN * churn {
        return (LESS, None);
    }
    let calls = on.seen_of(names::ASKS_TO_COLLECT).into_iter().take(3).collect::<Vec<_>>().join(", ");
    (NOT_ASKED, Some(format!("the program asks for collections itself: {calls}")))
}

/// Goroutines that wait meanwhile for Go's collector.
fn waits_for_collector(facts: &Facts<'_>) -> Option<String> {
    let many = at_collector(facts.seen.goroutines.as_ref()?);
    (many >= WAITING_MIN).then(|| format!("{many:.1} goroutines wait for the collector at a time"))
}

fn growth_draft(facts: &Facts<'_>, share: f64) -> Draft {
    let by = facts.on.as_ref().map(|on| on.places(&[Cost::StackGrowth])).unwrap_or_default();
    Draft::new(Class::AllocationChurn, share, format!("{} of the CPU makes goroutines' stacks larger and copies them", percent(share)))
        .sure(sureness(share * 2.0))
        .fact(format!("{} in runtime.newstack and what it calls", percent(share)), share, "share")
        .sign_if(places(&by))
        .next("let one goroutine live and take the work, so that its stack has grown once; or keep deep calls shallow")
        .at(by.first().map(|place| place.0.clone()))
        .specimen("stack-growth")
}

/// memcpy takes the CPU.
pub(super) fn copying(facts: &Facts<'_>) -> Outcome {
    let Some(on) = &facts.on else { return facts.no_profile() };
    let named = on.share(&[Cost::Copy]);
    // A library without symbols hides memcpy's name; its code does not.
    let unnamed = |hot: &super::facts::Hot<'_>| {
        hot.code.only_copies() && (hot.spot.function.starts_with("0x") || hot.spot.function.is_empty())
    };
    let share = named + facts.loop_share(unnamed);
    if share < WORK_SHARE_MIN {
        return Outcome::near(
            &[(share, WORK_SHARE_MIN)],
            format!("{} of the CPU copies bytes", percent(share)),
        );
    }
    let by = on.places(&[Cost::Copy]);
    Outcome::Found(
        Draft::new(
            Class::Copying,
            share,
            format!("{} of the CPU copies bytes from one place to another", percent(share)),
        )
        .sure(sureness(share))
        .fact(format!("{} in memcpy and its like", percent(named)), named, "share")
        .sign_if(places(&by))
        .next("pass a reference or share the bytes; write where they are sent from")
        .rung("outbox")
        .at(by.first().map(|place| place.0.clone()))
        .specimen("message-copies"),
    )
}

/// printf, iostream, to_string take the CPU.
pub(super) fn formatting(facts: &Facts<'_>) -> Outcome {
    let Some(on) = &facts.on else { return facts.no_profile() };
    let traced = on.share_with(names::TRACES);
    if traced >= WORK_SHARE_MIN {
        return Outcome::Found(trace_draft(on, traced));
    }
    let share = on.share(&[Cost::Format]);
    if share < WORK_SHARE_MIN && on.lacks_names() {
        return Outcome::Unseen(NO_NAMES);
    }
    if share < WORK_SHARE_MIN {
        let text = format!("{} of the CPU makes text of numbers", percent(share));
        return Outcome::near(&[(share, WORK_SHARE_MIN)], text);
    }
    let by = on.places(&[Cost::Format]);
    let pickled = on.share_with(names::PICKLES);
    if pickled >= PICKLED_MIN * share {
        return Outcome::Found(pickle_draft(on, share, &by));
    }
    Outcome::Found(
        Draft::new(Class::Formatting, share, format!("{} of the CPU goes through formatting machinery", percent(share)))
            .sure(sureness(share))
            .fact(format!("in {}", on.seen_of(names::FORMAT).into_iter().take(4).collect::<Vec<_>>().join(", ")), share, "share")
            .sign_if(places(&by))
            .next("write digits into a buffer (to_chars, itoa); format what changes, once; leave out what nobody reads")
            .rung("date-cache")
            .at(by.first().map(|place| place.0.clone()))
            .specimen("formatting"),
    )
}

/// Who called whom is found out and named, for a line of a log or for an exception.
fn trace_draft(on: &super::facts::OnCpu<'_>, share: f64) -> Draft {
    let functions = on.seen_of(names::TRACES).into_iter().take(4).collect::<Vec<_>>().join(", ");
    let summary = format!("{} of the CPU finds out from where it was called (stack traces)", percent(share));
    Draft::new(Class::Formatting, share, summary)
        .sure(sureness(share))
        .fact(format!("in {functions}"), share, "share")
        .next("log lines without the caller's class, method and line (Logback %C %M %L, log4j2 includeLocation, Go's Lshortfile); exceptions that happen all the time: an ordinary return, or one without a trace")
        .at(on.place_with(names::TRACES))
}

/// Of what makes text or bytes, the part in which objects become bytes from which on this is what is told.
const PICKLED_MIN: f64 = 0.5;

/// Objects become bytes, and bytes objects: for another process, or a file.
fn pickle_draft(on: &super::facts::OnCpu<'_>, share: f64, by: &[(String, f64)]) -> Draft {
    let functions = on.seen_of(names::PICKLES).into_iter().take(4).collect::<Vec<_>>().join(", ");
    Draft::new(
        Class::Formatting,
        share,
        format!("{} of the CPU makes bytes of objects, and objects of bytes", percent(share)),
    )
    .sure(sureness(share))
    .fact(format!("in {functions}"), share, "share")
    .sign_if(places(by))
    .next("send less: what changed, a key in place of the thing; let children inherit what they read, share large arrays (shared_memory), or use threads")
    .at(by.first().map(|place| place.0.clone()))
}

/// The profile itself is the proof: what else could it be. Twice the threshold leaves no doubt.
fn sureness(share: f64) -> Confidence {
    if share >= 2.0 * WORK_SHARE_MIN { Confidence::High } else { Confidence::Medium }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use dyno_record::finding::Class;
    use dyno_record::observation::Transfers;
    use dyno_record::profile::{Frame, Stack, WaitClass};

    use crate::scene::{FIND, ROWS, Scene};

    #[test]
    fn a_walk_from_node_to_node_is_a_hot_spot_and_so_is_a_function_that_is_all_a_thread_does() {
        let all = |seconds| Scene::new(&[seconds]).on("main;digest", 99).on("main;other", 1).classes();
        assert_eq!((all(9.9), all(5.0)), (vec![Class::UserHotSpot], vec![]));
        // Two threads that share all of it out are what the program is for. Planted fault: `is_shared_out` that is false.
        let shared = Scene::new(&[9.9, 9.8]).on("main;digest", 99).on("main;other", 1);
        assert_eq!(shared.classes(), []);
        assert!(shared.diagnosed().notes.iter().any(|note| note.class == Class::UserHotSpot));
        // A checksum of a gigabyte. Planted fault: `streams` that is false.
        let moved = |bytes| {
            Scene::new(&[9.9]).on("main;digest", 99).on("main;other", 1).with(|seen| {
                seen.process.reads = Some(Transfers { calls: 10_000, bytes });
            })
        };
        assert_eq!((moved(1 << 30).classes(), moved(1 << 26).classes()), (vec![], vec![Class::UserHotSpot]));
        // Of three that take turns on two CPUs as well. Planted fault: only a function that takes nearly all of the CPU.
        let mut turns = Scene::new(&[9.9, 8.0, 1.5]).on("main;digest", 90);
        for (thread, weight) in [(1, 80), (2, 30)] {
            turns = turns.on(if thread == 1 { "main;digest" } else { "main;make" }, weight);
            turns.seen.on_cpu.as_mut().unwrap().stacks.last_mut().unwrap().thread = thread;
        }
        assert_eq!(turns.classes(), []);
        assert!(turns.diagnosed().notes.iter().any(|note| note.class == Class::UserHotSpot));
        let interpreter = Scene::new(&[9.9]).on("main;_PyEval_EvalFrameDefault", 99);
        assert_eq!(interpreter.classes(), []);
        let nameless = Scene::new(&[9.9]).on("main;0x4140", 100);
        assert_eq!(nameless.classes(), []);
        assert!(nameless.diagnosed().notes.iter().any(|note| note.summary.starts_with("x!0x4140 takes")));
        let walk = Scene::new(&[10.0]).on("main;work", 100).hot(FIND, 0.8, vec![]);
        assert_eq!(walk.classes(), [Class::UserHotSpot]);
        let hash = Scene::new(&[10.0]).on("main;work", 100).hot(FIND, 0.2, vec![]).hot(ROWS, 0.7, vec![]);
        assert_eq!(hash.classes(), []);
        assert!(hash.diagnosed().notes.iter().any(|note| note.class == Class::UserHotSpot));
    }

    /// A later machine of Java's: its workers run below a class that any program may have. Planted faults: threads are not known
    /// by their names (`COLLECTOR_THREADS` of nothing); a full collection of the serial heap is the program's own work.
    #[test]
    fn collectors_of_any_version_are_known_by_their_threads_and_operations() {
        let works = "WorkerThread::run();PartialArrayState::work()";
        let named = |name: &str| {
            Scene::new(&[9.0, 9.0]).on("java;work", 10).on(works, 90).with(|seen| {
                let profile = seen.on_cpu.as_mut().unwrap();
                profile.threads.iter_mut().for_each(|thread| thread.name = name.to_owned());
            })
        };
        assert_eq!(named("GC Thread#0").classes(), [Class::AllocationChurn]);
        assert!(!named("worker-1").classes().contains(&Class::AllocationChurn));
        let serial = Scene::new(&[9.0])
            .on("java;work", 10)
            .on("VMThread::run();VM_SerialCollectForAllocation::doit();SerialFullGC::mark()", 90);
        assert_eq!(serial.classes(), [Class::AllocationChurn]);
    }

    /// Planted faults: whoever collects was asked to (`ASKED_MIN` of 0); a call now and then beside other work of the allocator's
    /// (`COLLECTED_MIN` not asked).
    #[test]
    fn a_program_that_asks_for_collections_is_told_to_leave_that_out() {
        let advised = |stacks: &[(&str, u64)]| {
            let scene = Scene::new(&[9.0, 9.0]).on("main;work", 40);
            let scene = stacks.iter().fold(scene, |scene, (stack, weight)| scene.on(stack, *weight));
            scene.diagnosed().findings.remove(0).next.remove(0).text
        };
        let collects = ("GangWorker::loop();G1FullGCMarkTask::work(unsigned int)", 50);
        let asked =
            ("VMThread::run();VM_G1CollectFull::doit();G1CollectedHeap::do_full_collection(bool)", 10);
        assert!(advised(&[collects, asked]).contains("DisableExplicitGC"));
        let full = (
            "VMThread::run();VM_G1CollectForAllocation::doit();G1CollectedHeap::do_full_collection(bool)",
            10,
        );
        assert!(advised(&[collects, full]).contains("a larger heap"));
        assert!(
            advised(&[("main;page;malloc", 55), ("main;page;gc_collect;gc_collect_main", 5)])
                .contains("reuse")
        );
    }

    /// Planted faults: no such function is known; a program that mostly prints is told of objects (`PICKLED_MIN` of 0).
    #[test]
    fn objects_that_become_bytes_are_told_apart_from_text() {
        let said = |pickles: u64, prints: u64| {
            let scene = Scene::new(&[9.0, 9.0])
                .on("main;put;_pickle_dumps;0x10;0x20", pickles)
                .on("main;page;snprintf", prints)
                .on("main;work", 100 - pickles - prints);
            scene.diagnosed().findings.into_iter().next().map(|one| (one.class, one.summary))
        };
        let (class, summary) = said(30, 0).unwrap();
        assert!(class == Class::Formatting && summary.contains("objects of bytes"), "{summary}");
        assert!(said(5, 30).unwrap().1.contains("formatting machinery"));
        assert_eq!(said(24, 0), None);
    }

    /// A line of a log with its caller's method and line. Planted fault: no such function is known.
    #[test]
    fn who_finds_out_from_where_it_was_called_is_told() {
        let traced = "T.main;Logger.log;java.lang.Throwable.getOurStackTrace;JVM_InitStackTraceElementArray;StringTable::intern()";
        let said = |share: u64| {
            let scene = Scene::new(&[9.0, 9.0]).on(traced, share).on("main;work", 100 - share).diagnosed();
            scene.findings.into_iter().next().map(|one| (one.class, one.summary))
        };
        let (class, summary) = said(60).unwrap();
        assert!(class == Class::Formatting && summary.contains("stack traces"), "{summary}");
        assert_eq!(said(20), None);
    }

    /// A heap that is too small. Planted faults: collectors that take nine tenths are all that the program does; a thread that waits
    /// for the collector waits for a lock of the allocator.
    #[test]
    fn a_collector_that_takes_nearly_all_is_churn_and_who_waits_for_it_waits_for_no_lock() {
        let way = "java;MemAllocator::allocate() const;GenCollectedHeap::mem_allocate_work(unsigned long);VMThread::execute(VM_Operation*);VMThread::wait_until_executed(VM_Operation*);Monitor::wait(long);os::PlatformMonitor::wait(long);___pthread_cond_wait;__pthread_cond_wait_common;__futex_abstimed_wait_common;futex_wait_[k]";
        let turn = "java;MemAllocator::allocate() const;GenCollectedHeap::mem_allocate_work(unsigned long);Mutex::lock();___pthread_mutex_lock;__GI___lll_lock_wait;futex_wait_[k]";
        let given = "java;MemAllocator::allocate() const;GenCollectedHeap::mem_allocate_work(unsigned long);pthread_mutex_unlock;futex_wake_[k]";
        let by = "VMThread::run();pthread_cond_broadcast;futex_wake_[k]";
        let collected = Scene::new(&[0.7, 0.7, 8.0])
            .on("java;work", 10)
            .on("VMThread::run();VM_GenCollectForAllocation::doit();GenMarkSweep::mark", 90)
            .off(1, WaitClass::Lock, way, 5.0)
            .woken("0x1", 3, by)
            .off(2, WaitClass::Lock, turn, 4.0)
            .woken("0x2", 1, given)
            .off(1, WaitClass::Lock, turn, 4.0)
            .woken("0x2", 2, given);
        assert_eq!(collected.classes(), [Class::AllocationChurn]);
        let allocator = Scene::new(&[9.0]).on("main;work", 10).on("main;malloc;_int_malloc", 90);
        assert_eq!(allocator.classes(), [], "it measures its allocator");
    }

    #[test]
    fn kinds_of_work_are_named_by_their_deepest_cause() {
        let shares = |heavy: &str, weight: u64| {
            Scene::new(&[10.0]).on("main;work", 100 - weight).on(heavy, weight).first()
        };
        for (stack, class) in [
            ("main;work;malloc;_int_malloc", Class::AllocationChurn),
            ("main;work;operator new(unsigned long);malloc", Class::AllocationChurn),
            ("main.main;runtime.newobject;runtime.mallocgc", Class::AllocationChurn),
            ("runtime.gcBgMarkWorker;runtime.gcDrain", Class::AllocationChurn),
            ("main;work;memcpy", Class::Copying),
            ("main;work;snprintf;__vsnprintf_internal", Class::Formatting),
            ("main;work;std::ostream::_M_insert<long>(long);malloc", Class::Formatting),
            (
                "main.main;encoding/json.(*Encoder).Encode;bytes.(*Buffer).Write;runtime.memmove",
                Class::Formatting,
            ),
            ("main;work;asm_exc_page_fault_[k];clear_page_erms_[k]", Class::PageFaults),
            ("main;work;munmap;__x64_sys_munmap_[k];unmap_region_[k]", Class::PageFaults),
        ] {
            assert_eq!(shares(stack, 40), Some(class), "{stack}");
            assert_eq!(shares(stack, 8), None, "{stack}");
        }
        assert_eq!(
            shares("main.write;runtime.morestack;runtime.newstack;runtime.copystack", 15),
            Some(Class::AllocationChurn)
        );
    }

    /// Planted fault: whatever lies below a formatter formats.
    #[test]
    fn what_a_writer_does_with_text_is_its_own_work() {
        for stack in [
            "main.main;encoding/json.(*Encoder).Encode;compress/gzip.(*Writer).Write;compress/flate.(*compressor).deflate",
            "main;core::fmt::write;<flate2::gz::write::GzEncoder<W> as std::io::Write>::write;deflate",
        ] {
            let classes = Scene::new(&[10.0]).on("main;work", 60).on(stack, 40).classes();
            assert_eq!(classes, [], "{stack}");
        }
    }

    /// A list is searched for a word, in a function that its library has no name for. Planted faults: what compares is a function of its
    /// own; one without a name is none, or any is; `main` is a place.
    #[test]
    fn who_compares_by_the_c_library_is_the_one_who_searches() {
        let told = |function: &str, compares: u64, callee: &str| {
            let below = format!("main;run;{function};{callee}");
            let scene = Scene::new(&[9.9]).on(&format!("main;run;{function}"), 97 - compares);
            let said = scene.on(&below, compares).on("main;run", 3).diagnosed();
            let spot = said.findings.into_iter().find(|finding| finding.class == Class::UserHotSpot);
            spot.map(|finding| finding.summary)
        };
        let said = told("find_word", 46, "__memcmp_evex_movbe").unwrap();
        assert!(said.starts_with("find_word is 97 % of what thread 1"), "{said}");
        let said = told("0x56a60", 46, "__memcmp_evex_movbe").unwrap();
        assert!(said.starts_with("x!0x56a60 is 97 %"), "{said}");
        assert_eq!(told("0x56a60", 10, "__memcmp_evex_movbe"), None, "it may be a loop that runs others");
        assert_eq!(told("find_word", 46, "digest"), None, "two functions");
        assert_eq!(told("_PyEval_EvalFrameDefault", 46, "memcmp"), None, "an interpreter");
        assert_eq!(told("main", 46, "memcmp"), None, "the program itself");
    }

    #[test]
    fn a_function_of_many_lines_is_one_function() {
        let lines = Scene::new(&[10.0]).on("main;digest", 60).on("main;other", 40).with(|seen| {
            let profile = seen.on_cpu.as_mut().unwrap();
            let digest = profile.frames.iter().position(|frame| frame.name == "digest").unwrap() as u32;
            let whole = profile.stacks.iter().position(|stack| stack.frames.last() == Some(&digest)).unwrap();
            let whole = profile.stacks.remove(whole);
            for line in 1..=10 {
                let frame = Frame { line: Some(line), ..profile.frames[digest as usize].clone() };
                profile.frames.push(frame);
                let mut frames = whole.frames.clone();
                *frames.last_mut().unwrap() = profile.frames.len() as u32 - 1;
                profile.stacks.push(Stack { frames, weight_ns: whole.weight_ns / 10, ..whole.clone() });
            }
        });
        let notes = lines.diagnosed().notes;
        assert!(
            notes.iter().any(|note| note.summary.contains("digest") && note.summary.contains("60 %")),
            "{notes:?}"
        );
    }

    /// Planted faults: only the C library's own are known (no `*printf`); what it calls is somebody else's.
    #[test]
    fn a_programs_own_way_to_printf_makes_text() {
        let with = |stack: &str| Scene::new(&[9.0]).on(stack, 30).on("main;work", 70).classes();
        assert_eq!(with("main;feed;sdscatprintf;sdscatvprintf;sdsMakeRoom"), [Class::Formatting]);
        assert_eq!(with("main;feed;g_strdup_printf;g_vasprintf;0x10"), [Class::Formatting]);
        assert_eq!(with("main;feed;printfile;0x10"), []);
    }

    /// `std::chrono::steady_clock::now()` for each item. Planted faults: it is a hot function and no more (`reads_clock` of nothing); however
    /// little; what waits until a time is at it too.
    #[test]
    fn who_reads_the_clock_for_each_item_is_told() {
        let reads = |hundredths: u64| {
            let clock = "main;work;std::chrono::_V2::steady_clock::now();clock_gettime;__vdso_clock_gettime";
            Scene::new(&[9.0, 9.0]).on(clock, hundredths).on("main;work", 100 - hundredths)
        };
        let found = reads(30).diagnosed().findings.remove(0);
        assert_eq!(
            (found.class, found.summary.as_str()),
            (Class::UserHotSpot, "30 % of the CPU reads the clock")
        );
        assert_eq!(found.next[0].code.as_deref(), Some("work"));
        assert_eq!(reads(24).classes(), []);
        assert_eq!(Scene::new(&[9.0, 9.0]).on("main;clock_nanosleep", 30).on("main;work", 70).classes(), []);
    }

    /// Ruby as Debian strips it: `format` in a loop, and a collection for nearly each string. Planted faults: text that is made calls for it
    /// and is told (`collects` of nothing); nothing else is done (`share_below` of nought); what the allocator calls is a hot spot.
    #[test]
    fn a_collector_without_names_is_known_by_what_calls_it() {
        let stack = "ruby_run_node;0xb7f70;rb_vm_exec;0x1e89b0;rb_str_format;rb_str_buf_new;0xd8460;0xd60c0";
        let parts = ["0xd52a0", "0xd37b0", "rb_hash_stlike_foreach"].map(|leaf| format!("{stack};{leaf}"));
        let scene =
            parts.iter().fold(Scene::new(&[9.9]).on("ruby_run_node;rb_vm_exec", 5), |scene, stack| {
                scene.on(stack, if stack.ends_with('h') { 35 } else { 30 })
            });
        assert_eq!(scene.classes(), [Class::AllocationChurn]);
        // A program that does nothing but take memory measures its allocator.
        let bench = Scene::new(&[9.9]).on("main;bench;ruby_xmalloc;malloc", 95).on("main;bench", 5);
        assert_eq!(bench.classes(), []);
    }

    #[test]
    fn where_the_kernel_could_not_be_sampled_shares_are_of_all_cpu_time_and_its_costs_are_not_seen() {
        let unprivileged = |kernel: f64| {
            Scene::new(&[10.0]).on("main;work;malloc", 30).on("main;work", 70).with(|seen| {
                seen.on_cpu.as_mut().unwrap().sampling.event = "cpu-clock:u".into();
                seen.process.kernel_share = Some(kernel);
            })
        };
        assert_eq!(unprivileged(0.8).classes(), [], "30 % of a fifth");
        assert_eq!(unprivileged(0.05).classes(), [Class::AllocationChurn]);
        let said = unprivileged(0.8).diagnosed();
        let is_unseen = |class| !said.ruled_out.iter().any(|out| out.class == class);
        assert!(is_unseen(Class::PageFaults) && is_unseen(Class::FilteredSyscalls), "{:?}", said.ruled_out);
        assert!(!is_unseen(Class::Copying));
        // Loops are seen in user code only: half of a tenth is no half.
        let walks = |kernel| {
            let scene = Scene::new(&[10.0]).on("main;work", 100).hot(FIND, 0.9, vec![]);
            scene.with(|seen| {
                seen.on_cpu.as_mut().unwrap().sampling.event = "cpu-clock:u".into();
                seen.process.kernel_share = Some(kernel);
            })
        };
        assert_eq!((walks(0.0).classes(), walks(0.8).classes()), (vec![Class::UserHotSpot], vec![]));
    }

    #[test]
    fn what_goes_by_names_is_not_answered_where_there_are_none() {
        let program = |unnamed: u64| {
            let scene = Scene::new(&[9.0]).on("0x10;0x20", unnamed).on("main;sum", 100 - unnamed);
            let not: Vec<String> = scene.diagnosed().not_looked_at.into_iter().map(|not| not.what).collect();
            not.iter().filter(|what| what.contains("formatting") || what.contains("allocation")).count()
        };
        assert_eq!((program(60), program(40)), (2, 0));
    }
}
