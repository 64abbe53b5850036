//! Whether the numbers of a list go from one level to another by themselves, by as much as two lists are told to differ.
//!
//! A machine that has two speeds, and keeps each for a while, makes one list fast and the next one slow. Where a list holds a
//! change of it, the few numbers before or behind it are cut off as outliers are, and no correlation is left to be seen. What
//! is left is where they stand: numbers that lie nearer the other list's level by chance are scattered, these stand together.
//! So runs are counted (Wald and Wolfowitz, 1940), and held against the same numbers in other orders.

use crate::prng::Prng;

/// Orders that are tried.
const ORDERS: usize = 1_000;
/// Of independent numbers one answer in fifty is lost, and of many numbers none.
const CHANCE: f64 = 0.02;

/// Numbers that lie nearer the other list's level, and stand together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretches {
    /// How many numbers these are.
    pub numbers: usize,
    /// Of how many.
    pub of: usize,
    /// In how many stretches they stand.
    pub stretches: usize,
}

impl Stretches {
    /// Of lists in which a number that lies nearer the other level is marked. `None` where chance may have put them there.
    pub(crate) fn of(mut marked: Vec<Vec<bool>>) -> Option<Self> {
        let count = |list: &Vec<bool>| list.iter().filter(|is_marked| **is_marked).count();
        let seen = Stretches {
            numbers: marked.iter().map(count).sum(),
            of: marked.iter().map(Vec::len).sum(),
            stretches: marked.iter().map(|list| stretches(list)).sum(),
        };
        let runs = |lists: &[Vec<bool>]| lists.iter().map(|list| runs(list)).sum::<usize>();
        let (there, most) = (runs(&marked), (CHANCE * ORDERS as f64) as usize);
        let mut chance = Prng::new(seen.of as u64);
        let mut as_few = 0;
        for _ in 0..ORDERS {
            marked.iter_mut().for_each(|list| chance.shuffle(list));
            as_few += usize::from(runs(&marked) <= there);
            if as_few > most {
                return None;
            }
        }
        Some(seen)
    }
}

/// Runs of neighbours that are alike.
fn runs(marked: &[bool]) -> usize {
    marked.chunk_by(|one, next| one == next).count()
}

/// Those of marked ones.
fn stretches(marked: &[bool]) -> usize {
    marked.chunk_by(|one, next| one == next).filter(|run| run[0]).count()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::dependence::{series_paired, series_unpaired};
    use crate::judge::Verdict;

    fn marked(text: &str) -> Vec<bool> {
        text.chars().map(|letter| letter == '#').collect()
    }

    /// By hand: two of twenty stand together at one end in 2 of 190 orders, three in 2 of 1,140, one in 2 of 20; two lists with one each
    /// at an end in 4 of 400.
    #[test]
    fn numbers_that_stand_together_are_told_where_chance_hardly_puts_them_there() {
        let of = |lists: &[&str]| Stretches::of(lists.iter().map(|list| marked(list)).collect());
        assert_eq!(of(&["##.................."]), Some(Stretches { numbers: 2, of: 20, stretches: 1 }));
        assert_eq!(of(&["....................", ".................###"]).unwrap().of, 40);
        assert_eq!(of(&["#...................", "...................#"]).unwrap().stretches, 2);
        for chance in [
            &["#..................."][..],
            &[".........##........."],
            &["##........", ".........."],
            &["..."],
            &[],
        ] {
            assert_eq!(of(chance), None, "{chance:?}");
        }
        assert_eq!(of(&["#...#......#....#..#"]), None);
        // All are nearer the other one: no order is another.
        assert_eq!(of(&["##########"]), None);
    }

    /// Numbers around 100, from some number on by 3 % higher or lower.
    fn list(rng: &mut Prng, n: usize, stays: f64) -> Vec<f64> {
        let mut is_high = false;
        let mut next = || {
            is_high ^= rng.unit() > stays;
            100.0 * (0.03 * f64::from(u8::from(is_high)) + 0.003 * rng.normal()).exp()
        };
        (0..n).map(|_| next()).collect()
    }

    /// Where a list holds no change, or one number of another level, nothing can be seen. Planted faults: nothing is seen
    /// (`of` is always `None`), and 8 % of twenty numbers are called; not in lists whose interval is a wave's (`leaps` is never
    /// true), and 3 % of forty are.
    #[test]
    fn a_machine_with_two_speeds_is_rarely_taken_for_a_change() {
        let mut rng = Prng::new(7);
        for (n, stays, most) in [(20, 0.95, 0.065), (40, 0.95, 0.025), (100, 0.97, 0.01)] {
            for compare in [series_paired, series_unpaired] {
                let called = |_: &usize| {
                    let (a, b) = (list(&mut rng, n, stays), list(&mut rng, n, stays));
                    compare(&a, &b, 0.01).unwrap().verdict() != Verdict::NoDifference
                };
                let called = (0..1_000).filter(called).count() as f64 / 1_000.0;
                println!("{n} numbers that stay {stays}: {called}");
                assert!(called <= most, "{n} numbers that stay {stays}: {called}");
            }
        }
    }

    /// Planted fault: `CHANCE` of a half.
    #[test]
    fn independent_numbers_keep_their_answer() {
        let mut rng = Prng::new(8);
        for compare in [series_paired, series_unpaired] {
            let mut lost = 0;
            for _ in 0..1_000 {
                let mut list = |level: f64| -> Vec<f64> {
                    // One in ten is far off.
                    let mut far = || if rng.unit() < 0.1 { 0.05 } else { 0.0 };
                    let far: Vec<f64> = (0..20).map(|_| far()).collect();
                    far.iter().map(|far| level * (far + 0.01 * rng.normal()).exp()).collect()
                };
                let told = compare(&list(100.0), &list(103.0), 0.01).unwrap();
                lost += usize::from(told.stretches.is_some());
            }
            println!("{lost} of 1,000");
            assert!(lost <= 25, "{lost} of 1,000");
        }
    }

    /// Numbers that resemble their neighbours stray together, and do not leap. Planted faults: all lists are looked at (`leaps` is
    /// always true), or what is near either level is not asked (small changes are lost).
    #[test]
    fn numbers_that_resemble_their_neighbours_keep_their_answer() {
        let mut rng = Prng::new(9);
        for (n, by, least) in [(200, 0.6, 0.9), (200, 2.5, 0.97), (60, 2.0, 0.9)] {
            for compare in [series_paired, series_unpaired] {
                let told = |_: &usize| {
                    let mut list = |level: f64| -> Vec<f64> {
                        let mut state = rng.normal();
                        let mut next = || {
                            state = 0.5 * state + 0.75_f64.sqrt() * rng.normal();
                            100.0 * (0.01 * (level + state)).exp()
                        };
                        (0..n).map(|_| next()).collect()
                    };
                    let (a, b) = (list(0.0), list(by));
                    compare(&a, &b, 0.01).unwrap().stretches.is_none()
                };
                let kept = (0..500).filter(told).count() as f64 / 500.0;
                println!("{n} numbers, {by} deviations apart: {kept} keep their answer");
                assert!(kept >= least, "{n} numbers, {by} deviations apart: {kept}");
            }
        }
    }
}
