//! Lists of CPUs as the kernel writes them, `0-2,5`: for checks that compare where things run.

/// CPUs of a list at most, as the kernel can have (`MAXSMP`).
const CPUS_MAX: usize = 8_192;

/// The CPUs of a list, ascending and each once; what is no list names none.
pub(super) fn cpus(list: &str) -> Vec<u32> {
    let mut all = Vec::new();
    for piece in list.split(',') {
        let (first, last) = piece.split_once('-').unwrap_or((piece, piece));
        let (Ok(first), Ok(last)) = (first.trim().parse::<u32>(), last.trim().parse::<u32>()) else {
            continue;
        };
        all.extend((first..=last).take(CPUS_MAX.saturating_sub(all.len())));
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// A few of them in words: `0, 1, 2`, or the first ones and how many more.
pub(super) fn words(cpus: &[u32]) -> String {
    const NAMED_MAX: usize = 8;
    let named: Vec<String> = cpus.iter().take(NAMED_MAX).map(u32::to_string).collect();
    let more = cpus.len().saturating_sub(NAMED_MAX);
    named.join(", ") + &if more > 0 { format!(" and {more} more") } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Planted fault: a range is taken as it is; then `0-4294967295` fills the memory.
    #[test]
    fn a_list_is_read_and_one_that_is_none_names_nobody() {
        assert_eq!(cpus("0-2,5"), [0, 1, 2, 5]);
        assert_eq!(cpus("5,0,5"), [0, 5]);
        assert!(cpus("").is_empty() && cpus("all").is_empty() && cpus("3-1").is_empty());
        assert_eq!(cpus("0-4294967295").len(), CPUS_MAX);
        assert_eq!(words(&cpus("0-9")), "0, 1, 2, 3, 4, 5, 6, 7 and 2 more");
    }
}
