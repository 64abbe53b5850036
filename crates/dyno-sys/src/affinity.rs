//! Which thread may run on which CPU (`sched_setaffinity(2)`), and how CPUs lie (sysfs topology).
//!
//! Sets are written the kernel's way, `0-2,5`. Nothing here chooses CPUs: plans do.

use crate::errno::checked;
use crate::{Pid, Tid};
use std::fmt;
use std::io;
use std::str::FromStr;

/// The largest NR_CPUS a kernel can be built with (arch/x86/Kconfig, MAXSMP); one set takes 1 KiB.
pub const CPUS_MAX: usize = 8_192;
const WORDS: usize = CPUS_MAX / 64;
const SET_BYTES: usize = WORDS * size_of::<u64>();

/// A set of CPU numbers below [`CPUS_MAX`].
#[derive(Clone, PartialEq, Eq)]
pub struct CpuSet {
    words: [u64; WORDS],
}

/// Why a text is no CPU set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CpuSetError {
    /// No CPU at all.
    #[error("no CPU named; write for example 0-2,5")]
    Empty,
    /// A piece that is neither a number nor a range.
    #[error("{piece:?} is not a CPU number or range; write for example 0-2,5")]
    NotANumber {
        /// The piece between two commas.
        piece: String,
    },
    /// A range that runs down.
    #[error("the range {piece:?} runs backwards")]
    Backwards {
        /// The piece between two commas.
        piece: String,
    },
    /// A number that no kernel uses.
    #[error("CPU {cpu} is out of range; the last possible one is {}", CPUS_MAX - 1)]
    TooLarge {
        /// The number.
        cpu: usize,
    },
}

impl CpuSet {
    /// The set of no CPU.
    pub const fn empty() -> CpuSet {
        CpuSet { words: [0; WORDS] }
    }

    /// The set of one CPU. Panics at or above [`CPUS_MAX`].
    pub fn single(cpu: usize) -> CpuSet {
        CpuSet::from_iter([cpu])
    }

    /// Adds one CPU. Panics at or above [`CPUS_MAX`].
    pub fn insert(&mut self, cpu: usize) {
        assert!(cpu < CPUS_MAX, "CPU {cpu} is beyond any kernel's last");
        self.words[cpu / 64] |= 1 << (cpu % 64);
    }

    /// Takes one CPU out; one that is not in is no error.
    pub fn remove(&mut self, cpu: usize) {
        if let Some(word) = self.words.get_mut(cpu / 64) {
            *word &= !(1 << (cpu % 64));
        }
    }

    /// Whether `cpu` is in.
    pub fn contains(&self, cpu: usize) -> bool {
        self.words.get(cpu / 64).is_some_and(|word| word & (1 << (cpu % 64)) != 0)
    }

    /// How many CPUs are in.
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether none is in.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// The CPUs, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..CPUS_MAX).filter(|&cpu| self.contains(cpu))
    }
}

/// Where the calling thread may run.
pub fn allowed() -> CpuSet {
    of(0).expect("one's own thread exists, and the set has room for every CPU a kernel can have")
}

/// Where thread `tid` may run (0 is the calling one). `ESRCH` when it is gone.
pub fn of(tid: Tid) -> io::Result<CpuSet> {
    let mut set = CpuSet::empty();
    // SAFETY: the pointer and length are those of `set.words`, writable for the length of the call.
    checked(unsafe { libc::sched_getaffinity(tid, SET_BYTES, set.words.as_mut_ptr().cast()) })?;
    Ok(set)
}

/// Binds the calling thread. `EINVAL` when no CPU of `cpus` is online and allowed.
pub fn set_current(cpus: &CpuSet) -> io::Result<()> {
    set(0, cpus)
}

/// Binds thread `tid`. Threads and children it starts later inherit the set.
pub fn set(tid: Tid, cpus: &CpuSet) -> io::Result<()> {
    // SAFETY: the pointer and length are those of `cpus.words`, readable for the length of the call.
    checked(unsafe { libc::sched_setaffinity(tid, SET_BYTES, cpus.words.as_ptr().cast()) })?;
    Ok(())
}

/// Binds every thread that process `pid` has now; one that ends meanwhile is no error.
pub fn set_process(pid: Pid, cpus: &CpuSet) -> io::Result<()> {
    for tid in crate::tasks::tasks(pid) {
        match set(tid, cpus) {
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
            outcome => outcome?,
        }
    }
    Ok(())
}

/// The CPUs that are switched on; where sysfs is missing, those this thread may use.
pub fn online() -> CpuSet {
    read_list("/sys/devices/system/cpu/online").unwrap_or_else(allowed)
}

/// The hardware threads that share `cpu`'s core, itself among them; itself alone where sysfs does not say.
pub fn siblings(cpu: usize) -> CpuSet {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    read_list(&path).unwrap_or_else(|| CpuSet::single(cpu))
}

fn read_list(path: &str) -> Option<CpuSet> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

impl FromIterator<usize> for CpuSet {
    fn from_iter<I: IntoIterator<Item = usize>>(cpus: I) -> CpuSet {
        let mut set = CpuSet::empty();
        cpus.into_iter().for_each(|cpu| set.insert(cpu));
        set
    }
}

impl FromStr for CpuSet {
    type Err = CpuSetError;

    fn from_str(text: &str) -> Result<CpuSet, CpuSetError> {
        if text.trim().is_empty() {
            return Err(CpuSetError::Empty);
        }
        let mut set = CpuSet::empty();
        for piece in text.trim().split(',') {
            let (first, last) = parse_range(piece)?;
            (first..=last).for_each(|cpu| set.insert(cpu));
        }
        Ok(set)
    }
}

fn parse_range(piece: &str) -> Result<(usize, usize), CpuSetError> {
    let (first, last) = piece.split_once('-').unwrap_or((piece, piece));
    let (first, last) = (parse_cpu(first, piece)?, parse_cpu(last, piece)?);
    if first > last {
        return Err(CpuSetError::Backwards { piece: piece.to_owned() });
    }
    Ok((first, last))
}

fn parse_cpu(digits: &str, piece: &str) -> Result<usize, CpuSetError> {
    let digits = digits.trim();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(CpuSetError::NotANumber { piece: piece.to_owned() });
    }
    // Only digits, so parsing fails by overflow alone.
    let cpu = digits.parse().unwrap_or(usize::MAX);
    if cpu >= CPUS_MAX { Err(CpuSetError::TooLarge { cpu }) } else { Ok(cpu) }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpu = 0;
        let mut comma = "";
        while cpu < CPUS_MAX {
            let run = (cpu..CPUS_MAX).take_while(|&next| self.contains(next)).count();
            match run {
                0 => {}
                1 => write!(out, "{comma}{cpu}")?,
                _ => write!(out, "{comma}{cpu}-{}", cpu + run - 1)?,
            }
            if run > 0 {
                comma = ",";
            }
            cpu += run + 1;
        }
        Ok(())
    }
}

impl fmt::Debug for CpuSet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "CpuSet({self})")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_list_is_written_as_it_was_read() {
        for text in ["0", "0-2,5", "1,3,5-7", "63-65", "8191"] {
            assert_eq!(text.parse::<CpuSet>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn runs_are_joined_and_order_does_not_matter() {
        assert_eq!("5,0,1,2,2".parse::<CpuSet>().unwrap().to_string(), "0-2,5");
        assert_eq!(" 0-1 ".parse::<CpuSet>().unwrap(), CpuSet::from_iter([0, 1]));
    }

    #[test]
    fn what_is_no_list_is_refused_with_the_piece() {
        let piece = |text: &str| text.to_owned();
        assert_eq!("".parse::<CpuSet>(), Err(CpuSetError::Empty));
        assert_eq!("1,x".parse::<CpuSet>(), Err(CpuSetError::NotANumber { piece: piece("x") }));
        assert_eq!("1,,2".parse::<CpuSet>(), Err(CpuSetError::NotANumber { piece: piece("") }));
        assert_eq!("-1".parse::<CpuSet>(), Err(CpuSetError::NotANumber { piece: piece("-1") }));
        assert_eq!("+1".parse::<CpuSet>(), Err(CpuSetError::NotANumber { piece: piece("+1") }));
        assert_eq!("3-1".parse::<CpuSet>(), Err(CpuSetError::Backwards { piece: piece("3-1") }));
        assert_eq!("8192".parse::<CpuSet>(), Err(CpuSetError::TooLarge { cpu: 8_192 }));
        assert_eq!("99999999999999999999".parse::<CpuSet>(), Err(CpuSetError::TooLarge { cpu: usize::MAX }));
    }

    #[test]
    fn sets_count_and_contain_what_was_put_in() {
        let mut set = "1-3,70".parse::<CpuSet>().unwrap();
        assert_eq!(
            (set.len(), set.contains(70), set.contains(0), set.contains(CPUS_MAX)),
            (4, true, false, false)
        );
        set.remove(70);
        set.remove(CPUS_MAX + 5);
        assert_eq!(set.iter().collect::<Vec<_>>(), [1, 2, 3]);
        assert!(CpuSet::empty().is_empty() && !set.is_empty());
    }

    #[test]
    fn a_bound_thread_reads_back_its_cpu() {
        let first = allowed().iter().next().unwrap();
        // A thread of its own, so that the binding dies with it.
        let read = std::thread::spawn(move || {
            set_current(&CpuSet::single(first)).unwrap();
            allowed()
        });
        assert_eq!(read.join().unwrap(), CpuSet::single(first));
    }

    #[test]
    fn an_empty_set_is_refused_by_the_kernel() {
        assert_eq!(set_current(&CpuSet::empty()).unwrap_err().raw_os_error(), Some(libc::EINVAL));
    }

    #[test]
    fn every_cpu_online_is_its_own_sibling() {
        for cpu in online().iter() {
            assert!(siblings(cpu).contains(cpu), "CPU {cpu} has siblings {}", siblings(cpu));
        }
    }
}
