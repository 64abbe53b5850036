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

/// All of them as words of a shell: a long run of them is counted there, `0 $(seq 4 4095)`.
pub(super) fn shell(cpus: &[u32]) -> String {
    const RUN_MIN: u32 = 4;
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for cpu in cpus {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *cpu => *last = *cpu,
            _ => runs.push((*cpu, *cpu)),
        }
    }
    let run = |(first, last): (u32, u32)| match last - first + 1 < RUN_MIN {
        true => (first..=last).map(|cpu| cpu.to_string()).collect::<Vec<_>>().join(" "),
        false => format!("$(seq {first} {last})"),
    };
    runs.into_iter().map(run).collect::<Vec<_>>().join(" ")
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
        assert_eq!(shell(&cpus("0,2-4,8-4095")), "0 2 3 4 $(seq 8 4095)");
        assert_eq!(words(&cpus("0-9")), "0, 1, 2, 3, 4, 5, 6, 7 and 2 more");
    }
}
