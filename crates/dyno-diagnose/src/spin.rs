//! Rule for threads that wait by burning CPU.

use dyno_record::finding::{Class, Confidence};
use dyno_record::profile::{Frame, Origin};

use super::draft::{Draft, Outcome, percent};
use super::facts::{Cost, Facts, Hot, OnCpu};
use super::in_vain;
use super::names;

/// A fifth of the CPU: what is burnt is missed by the thread that is waited for.
const SPIN_SHARE_MIN: f64 = 0.20;

/// Half of it: who looks now and then whether he is to stop, between pieces of work, spends less on it.
const LOOK_SHARE_MIN: f64 = 0.5;

const NO_CODE: &str = "the code at hot instructions (x86-64 and the right to read the target are needed)";

/// Go's select over several channels, and what it does when there is something, or when it waits.
const SELECTS: &[&str] = &["runtime.selectgo"];
const FINDS: &[&str] = &[
    "runtime.recv",
    "runtime.send",
    "runtime.typedmemmove",
    "runtime.goready*",
    "runtime.ready",
    "runtime.schedule",
    "runtime.park_m",
];
/// Of the CPU time, what these may take where it hardly ever finds anything.
const FINDS_MAX: f64 = 0.02;

/// Threads wait by burning CPU: a loop that looks at one place until it changes, or gives its turn away to look again, or asks
/// again and again for what is not there.
pub(super) fn spinning(facts: &Facts<'_>) -> Outcome {
    if let Some(draft) = asks_again(facts).or_else(|| in_vain::calls(facts)) {
        return Outcome::Found(draft);
    }
    let waits = |hot: &Hot<'_>| hot.code.only_waits() && !in_a_lock(hot);
    let looped = facts.loop_share(waits);
    let yielded = facts.cpu_share(&[Cost::Yield]).unwrap_or(0.0);
    let kernel = facts.cpu_share(&[Cost::KernelSpin]).unwrap_or(0.0);
    let share = looped + yielded;
    if facts.loops.is_empty() && yielded < SPIN_SHARE_MIN {
        return facts.no_loops(SPIN_SHARE_MIN, NO_CODE);
    }
    if share < SPIN_SHARE_MIN {
        let text = format!(
            "{} of the CPU only looks and waits, {} in the kernel's own locks",
            percent(share),
            percent(kernel)
        );
        return facts.short_of((share, SPIN_SHARE_MIN), NO_CODE, text);
    }
    let hottest = facts.hottest(waits);
    let place = hottest.map(Hot::place);
    let place = place.or_else(|| Some(facts.on.as_ref()?.places(&[Cost::Yield]).first()?.0.clone()));
    let at = place.clone().unwrap_or_else(|| "sched_yield".to_owned());
    Outcome::Found(
        Draft::new(Class::Spinning, share, format!("{} of the CPU waits in a loop, in {at}", percent(share)))
            .sure(Confidence::High)
            .sign_if(hottest.map(in_words))
            .fact(format!("{} in such loops, {} in giving the turn away, {} in the kernel's spin locks", percent(looped), percent(yielded), percent(kernel)), share, "share")
            .next("sleep in the kernel after a short while of looking (a futex, a condition, a barrier), or have no more threads than CPUs")
            .at(place)
            .specimen("spin-barrier"),
    )
}

/// Of such functions, those of a pool whose threads look for tasks while they wait for one.
const HELPERS: &[&str] = &["java.util.concurrent.ForkJoinPool*.help*"];
/// What such a thread calls while it looks. What it finds it runs below itself.
const HELPERS_OWN: &[&str] = &[
    "java.util.concurrent.ForkJoin*",
    "java.util.concurrent.CountedCompleter.*",
    "java.lang.Thread.*",
    "java.lang.invoke.*",
    "jdk.internal.*",
    "sun.misc.Unsafe.*",
];

/// Share of the CPU in which threads of a pool look for tasks, and have none.
fn looks_for_tasks(on: &OnCpu<'_>) -> f64 {
    on.share_where(|frames| {
        let at = frames.iter().position(|frame| names::is(&frame.name, HELPERS));
        let is_own = |frame: &&Frame| frame.origin == Origin::Kernel || names::is(&frame.name, HELPERS_OWN);
        at.is_some_and(|at| frames[..at].iter().all(is_own))
    })
}

/// Functions that look whether there is something, and do not wait for it, take most of the CPU.
fn asks_again(facts: &Facts<'_>) -> Option<Draft> {
    let on = facts.on.as_ref()?;
    // A select over several channels is one function whether it waits or not: one that finds nothing wakes nobody and never sleeps.
    let selects =
        Some(on.share_with(SELECTS)).filter(|share| *share > 0.0 && on.share_with(FINDS) < FINDS_MAX);
    let selects = selects.unwrap_or(0.0);
    let helping = looks_for_tasks(on);
    let share = on.share_with(names::LOOKS) + selects + helping;
    (share >= LOOK_SHARE_MIN).then(|| {
        let helps = helping >= LOOK_SHARE_MIN;
        let most = match () {
            () if selects >= LOOK_SHARE_MIN => SELECTS,
            () if helps => HELPERS,
            () => names::LOOKS,
        };
        let place = on.place_with(most);
        let at = place.clone().unwrap_or_else(|| "the program".to_owned());
        let next = if helps {
            "give tasks that wait for others' answers threads of their own (an executor, virtual threads), not the pool that computes: who waits \
             for such a task looks for other work meanwhile, without end"
        } else {
            "wait for it: a select without default, recv, lock; where there is other work, look once for each piece of it"
        };
        let functions: Vec<String> = on.seen_of(HELPERS).into_iter().take(2).collect();
        Draft::new(Class::Spinning, share, format!("{} of the CPU looks whether there is something, in {at}", percent(share)))
            .sure(Confidence::Medium)
            .sign_if(helps.then(|| format!("in {}", functions.join(", "))))
            .sign("how often there was something is not to be seen from here")
            .fact(
                format!("{} in functions that look and do not wait (a select with default, try_recv, trylock)", percent(share)),
                share,
                "share",
            )
            .next(next)
            .at(place)
            .specimen("spin-barrier")
    })
}

/// CPU time of loops that only wait in functions that take locks: nobody comes there but where another holds the lock.
pub(super) fn at_locks(facts: &Facts<'_>) -> f64 {
    facts.loop_share(|hot| hot.code.only_waits() && in_a_lock(hot))
}

/// A lock of a library that looks a while before it sleeps belongs to the lock.
fn in_a_lock(hot: &Hot<'_>) -> bool {
    names::is(&hot.spot.function, names::ACQUIRE)
}

fn in_words(hot: &Hot<'_>) -> String {
    let by = if hot.code.is_atomic() { "tries an atomic" } else { "reads one place" };
    let pause = if hot.code.pauses() { ", with a pause" } else { "" };
    format!(
        "its code {by} again and again{pause}: {} instructions, no store, no call, no counter",
        hot.code.instructions.len()
    )
}

#[cfg(test)]
mod tests {
    use dyno_record::finding::Class;

    use crate::scene::{Scene, WAIT, registers};

    /// A parallel stream whose tasks ask another server. Planted fault: a select with a default is advised on.
    #[test]
    fn threads_of_a_pool_that_look_for_tasks_while_they_wait_for_one_are_told_apart() {
        let advised = |function: &str| {
            let scene = Scene::new(&[9.0]).on(&format!("run;{function}"), 90).on("run;work", 10);
            let finding = scene.diagnosed().findings.remove(0);
            (finding.class, finding.next[0].text.contains("threads of their own"))
        };
        let helps = "java.util.concurrent.ForkJoinPool.helpComplete";
        assert_eq!(advised(helps), (Class::Spinning, true));
        let task = "java.util.concurrent.ForkJoinPool.helpComplete;java.util.concurrent.ForkJoinTask.doExec";
        assert_eq!(advised(task), (Class::Spinning, true));
        assert_eq!(advised("pthread_mutex_trylock"), (Class::Spinning, false));
    }

    /// A parallel stream of several requests at a time: who waits for its part works on others' meanwhile. Planted fault: all that
    /// stands below such a function looks for tasks.
    #[test]
    fn threads_of_a_pool_that_work_on_each_others_tasks_do_not_spin() {
        let works = "run;java.util.concurrent.ForkJoinPool.helpComplete;java.util.concurrent.ForkJoinTask.doExec;Sum.compute";
        let scene = Scene::new(&[9.0, 9.0]).on(works, 80).on("run;work", 20);
        assert!(!scene.classes().contains(&Class::Spinning));
    }

    #[test]
    fn a_loop_that_only_looks_is_spinning_before_it_is_a_hot_spot() {
        let scene = Scene::new(&[5.0; 4]).on("run;work", 100).hot(WAIT, 0.6, vec![registers(1, 0x1000, 0)]);
        assert_eq!(scene.classes(), [Class::Spinning]);
        assert_eq!(
            scene.diagnosed().notes.iter().map(|note| note.class).collect::<Vec<_>>(),
            [Class::UserHotSpot]
        );
        let yields =
            Scene::new(&[5.0; 4]).on("run;work", 50).on("run;sched_yield;__x64_sys_sched_yield_[k]", 50);
        assert_eq!(yields.first(), Some(Class::Spinning));
    }

    /// As Go's select with a default is met, around a channel on which nothing comes. Planted faults: only loops that call nothing
    /// are looked at; a select is a look whatever it finds (`FINDS_MAX` of 1).
    #[test]
    fn a_loop_that_asks_for_what_is_not_there_is_spinning() {
        let asks = |share| {
            let ask = "runtime.goexit;main.main.func2;runtime.selectnbrecv;runtime.chanrecv";
            Scene::new(&[9.9]).on(ask, share).on("runtime.goexit;main.work", 100 - share).classes()
        };
        assert!(asks(90).contains(&Class::Spinning), "{:?}", asks(90));
        let two =
            Scene::new(&[9.9]).on("main.main.func2;runtime.selectgo;runtime.sellock", 60).on("main.work", 40);
        assert!(two.classes().contains(&Class::Spinning), "a select of two channels with a default");
        let hands_on = Scene::new(&[9.9])
            .on("main.main.func2;runtime.selectgo;runtime.sellock", 60)
            .on("runtime.mcall;runtime.park_m;runtime.schedule", 5)
            .on("main.work", 35);
        assert_eq!(hands_on.classes(), [], "it finds something, or waits for it");
        assert!(!asks(30).contains(&Class::Spinning), "it looks whether to stop, between pieces of work");
    }

    /// As Rust's mutex is met where many want it for moments. Planted faults: the loop is told as spinning (`in_a_lock` that is false);
    /// it says nothing of the lock (`at_locks` of 0).
    #[test]
    fn a_lock_that_looks_before_it_sleeps_is_contended_where_the_cpu_goes_into_its_looks() {
        let lock = "<std::sys::sync::mutex::futex::Mutex>::lock_contended";
        let mut scene = Scene::new(&[9.9, 9.9]).on(&format!("run;{lock}"), 60).on("run;work", 40);
        scene = scene.hot(WAIT, 0.6, vec![registers(1, 0x1000, 0)]);
        assert_eq!(scene.first(), Some(Class::Spinning), "elsewhere it is a loop that only looks");
        scene.seen.hot[0].function = lock.to_owned();
        assert_eq!(scene.classes(), [Class::LockContention]);
    }
}
