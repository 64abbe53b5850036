//! Tests of the tables of names: what stands in which, and that patterns mean what they say.

#![allow(clippy::unwrap_used)]

use super::*;

#[test]
fn names_are_found_with_what_linkers_hang_on_them() {
    for name in ["malloc", "cfree@GLIBC_2.2.5", "_int_free.isra.0", "operator new(unsigned long)"] {
        assert!(is(name, ALLOCATOR), "{name}");
    }
    assert!(is("std::sys::sync::mutex::futex::Mutex::lock_contended", ACQUIRE));
    assert!(is("<u64 as core::fmt::Display>::fmt", FORMAT) && is("fmt.(*pp).doPrintf", FORMAT));
    // Planted fault: the C library's own names of its functions are not taken off.
    assert!(is("__GI_getpid", &["getpid"]) && is("__GI_getaddrinfo", &["getaddrinfo*"]));
    assert!(is("/usr/lib/x86_64-linux-gnu/libc.so.6", LIBRARIES));
}

/// Planted faults: a mark needs no end (`starts_with`); none needs a number (any as `.cold`); a clone keeps its bracket.
#[test]
fn a_compilers_mark_is_told_from_a_word_that_begins_like_one() {
    let marked = [
        "f.part.0",
        "f.isra.0.cold",
        "f.cold",
        "f.cold.5",
        "f.constprop.0.isra.1",
        "f.llvm.1234567",
        "f.lto_priv.0",
        "f [clone .isra.0]",
        "f [clone .part.0] [clone .cold]",
        "f@GLIBC_2.2.5",
    ];
    for name in marked {
        assert_eq!(bare(name), "f", "{name}");
    }
    for name in
        ["main.partition", "main.part", "main.part.func1", "main.coldStart", "main.cold.func1", "a.part.0x"]
    {
        assert_eq!(bare(name), name);
    }
    assert!(is("main", FIRST) && !is("main.partition", FIRST));
}

/// Planted fault: what is known of a name is known of it in every table (`at` of 0).
#[test]
fn what_is_known_of_a_name_is_known_for_its_table() {
    for _ in 0..2 {
        assert!(is("malloc", ALLOCATOR) && !is("malloc", FORMAT) && !is("snprintf", ALLOCATOR));
        assert!(is("snprintf", FORMAT));
    }
}

/// Planted faults: no brackets are taken off; a trait's function is the type's own.
#[test]
fn a_types_own_function_is_one_with_and_without_brackets() {
    assert!(is("<std::sys::sync::mutex::futex::Mutex>::lock_contended", ACQUIRE));
    assert_eq!(without_brackets("<a::B<c::D>>::e").as_deref(), Some("a::B<c::D>::e"));
    assert_eq!(without_brackets("<fn(A) -> B>::e").as_deref(), Some("fn(A) -> B::e"));
    for name in ["<a::B as c::D>::e", "a::B::e", "<a"] {
        assert_eq!(without_brackets(name), None, "{name}");
    }
}

#[test]
fn every_entry_fits_a_name() {
    // This file's own text: a table that is added is tested too. Stars only at the ends left some of them dead.
    let (memory, text) = (include_str!("names/memory.rs"), include_str!("names.rs"));
    let (from, to) = (text.find("const FORMAT").unwrap(), text.find("#[cfg(test)]").unwrap());
    let entries = [memory, &text[from..to]].into_iter().flat_map(|text| text.split('"').skip(1).step_by(2));
    let entries: Vec<&str> = entries.collect();
    assert!(entries.len() > 400, "{}", entries.len());
    for entry in entries {
        for name in [entry.replace('*', "x"), entry.replace('*', "")] {
            assert!(is_in(&name, &[entry]), "{entry}: {name}");
        }
    }
}

#[test]
fn stars_inside_an_entry_stand_for_anything() {
    assert!(is("gomp_team_barrier_wait_end", TOGETHER) && is("__kmp_hyper_barrier_release", TOGETHER));
    assert!(!is("gomp_team_end", TOGETHER) && !is("my_gomp_team_barrier", TOGETHER));
    let java = "Ljava/util/concurrent/ForkJoinPool;::awaitWork";
    assert!(is(java, IDLE_RUN_TIME) && !is("java.util.concurrent.ForkJoinPool.runWorker", IDLE_RUN_TIME));
    assert!(is("runtime.(*mheap).alloc", ALLOCATOR) && is("os::naked_short_nanosleep", SLEEP));
}

#[test]
fn a_name_that_only_sounds_alike_is_not_taken() {
    assert!(!is("free_orders", ALLOCATOR) && !is("my_malloc", ALLOCATOR) && !is("printform", FORMAT));
    assert!(!is("G1Add", ALLOCATOR) && is("G1ParScanThreadState::trim_queue", ALLOCATOR));
    assert!(!is("encoding/json.(*decodeState).object", FORMAT) && !is("encoding/json.Unmarshal", FORMAT));
    assert!(is("encoding/json.structEncoder.encode", FORMAT));
    assert!(!is("lock_the_book", ACQUIRE) && !is("tcp", NETWORK));
}

/// Their share is taken from that of all collectors.
#[test]
fn who_collects_beside_the_program_is_a_collector() {
    for name in COLLECTORS_BESIDE {
        assert!(COLLECTORS.contains(name), "{name}");
    }
    for name in COLLECTOR_THREADS_BESIDE {
        assert!(is(name.trim_end_matches('*'), COLLECTOR_THREADS), "{name}");
    }
}
