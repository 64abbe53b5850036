//! Memory: huge pages, swap, merging.

use dyno_record::fact::Fact;
use dyno_record::facts::{Memory, Swap};
use dyno_sys::proc;

use super::read::{fact, parsed, text};

const THP: &str = "/sys/kernel/mm/transparent_hugepage";
const HUGE: &str = "/sys/kernel/mm/hugepages";

/// All of it.
pub(super) fn memory() -> Memory {
    Memory {
        total_bytes: proc::machine().memory_bytes,
        available_bytes: proc::memory_left_bytes()
            .map_or_else(|| Fact::Absent("MemAvailable".into()), Fact::Value),
        thp: text(&format!("{THP}/enabled")),
        thp_defrag: text(&format!("{THP}/defrag")),
        thp_shmem: text(&format!("{THP}/shmem_enabled")),
        huge_pages: fact(HUGE, proc::names(HUGE, 16))
            .map(|sizes| sizes.iter().map(|size| (size.clone(), huge_pages(size))).collect()),
        swaps: parsed("/proc/swaps", |text| Some(parse_swaps(text))),
        ksm: text("/sys/kernel/mm/ksm/run"),
        zswap: text("/sys/module/zswap/parameters/enabled"),
    }
}

fn huge_pages(size: &str) -> (u64, u64) {
    let read = |file: &str| {
        let text = proc::text(&format!("{HUGE}/{size}/{file}")).unwrap_or_default();
        text.parse().unwrap_or(0)
    };
    (read("nr_hugepages"), read("free_hugepages"))
}

/// Lines of a name, a kind, a size and what is used, in KiB, and a priority.
fn parse_swaps(text: &str) -> Vec<Swap> {
    let swap = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let bytes = |at: usize| words.get(at)?.parse::<u64>().ok().map(|kib| kib * 1_024);
        Some(Swap { name: (*words.first()?).to_owned(), bytes: bytes(2)?, used_bytes: bytes(3)? })
    };
    text.lines().skip(1).filter_map(swap).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swap_areas_are_read_with_what_is_used() {
        let text = "Filename Type Size Used Priority\n/dev/sda2 partition 1000 10 -2\nnonsense\n";
        let swap = Swap { name: "/dev/sda2".into(), bytes: 1_024_000, used_bytes: 10_240 };
        assert_eq!(parse_swaps(text), [swap]);
        assert!(parse_swaps("").is_empty());
    }
}
