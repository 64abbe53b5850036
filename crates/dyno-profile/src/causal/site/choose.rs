//! Sites from a profile: the functions with most samples, then lines, and for every site its share and hottest lines.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use dyno_record::causal::HotLine;
use dyno_record::machine::Missing;
use dyno_record::profile::{Frame, Origin, Profile, Stack};
use dyno_record::shares::shares;

use super::debug::Function;
use super::entry;
use super::name::user_name;
use super::resolver::{Mapped, Resolver, are_one, is_name};
use super::waiting;
use crate::causal::rig::site::{Place, Reach, Tried};

/// Lines that are shown of a site.
const HOT_LINES_MAX: usize = 5;
/// Functions with less than this are not taken apart into lines.
const LINES_OF_PERCENT: f64 = 20.0;
/// A line with more of its function than this says nothing that the function does not.
const LINE_SHARE_MAX: f64 = 0.8;
/// A function that holds nearly all samples, callers counted, is `main` or a loop around everything: it is the program.
const WHOLE_PERCENT: f64 = 98.0;

/// What is chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Choice {
    /// How much of a stack counts.
    pub reach: Reach,
    /// Smallest share of the samples, percent: below it no effect would be seen.
    pub share_percent_min: f64,
    /// How many, at most.
    pub sites_max: usize,
    /// What counts as a site.
    pub parts: Parts,
}

/// What counts as a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parts {
    /// Functions with every copy of them, and lines of the heaviest ones: they may overlap.
    Any,
    /// Functions as they are called, with what was folded into them: each sample lies in one.
    Whole,
}

impl Choice {
    /// Two percent, eight sites.
    #[must_use]
    pub fn new(reach: Reach) -> Choice {
        Choice { reach, share_percent_min: 2.0, sites_max: 8, parts: Parts::Any }
    }

    /// Whole functions, so that what each is worth can be summed.
    #[must_use]
    pub fn whole(sites_max: usize) -> Choice {
        Choice { sites_max, parts: Parts::Whole, ..Choice::new(Reach::Own) }
    }
}

/// What a profile knows of threads that wait for each other in loops.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Spinning {
    /// Share of the samples in functions that mostly do, percent.
    pub percent: f64,
    /// The loops, where the process has them.
    pub loops: Vec<Range<u64>>,
}

/// How what has no name is called.
const NO_NAME: &str = "0x";
/// Least share, percent, that what a function calls has beyond itself, to be told.
const CALLEES_PERCENT_MIN: f64 = 2.0;
/// Functions with less than this are not looked at for loops that wait.
const SPINNING_OF_PERCENT: f64 = 1.0;
/// Names of what was not tried that are told.
const PASSED_OVER_MAX: usize = 5;
/// Folders whose code is the compiler's or its library's: what of it was folded into a function is that function's code.
const TOOLCHAIN: [&str; 6] =
    ["/rustc/", "/usr/include/", "/usr/lib/gcc/", "/usr/lib/llvm", "/usr/lib/clang/", "/rustlib/src/"];

/// A candidate: a name in a file of code.
pub(super) type Name<'p> = (u32, &'p str);

impl Resolver {
    /// The functions with most samples, then lines of theirs; and what was left out, with the reason. With
    /// [`Reach::Inclusive`] callers count for what they call, and come first.
    #[must_use]
    pub fn chosen(&self, profile: &Profile, choice: &Choice) -> (Vec<Tried>, Vec<Missing>) {
        let (mut sites, mut missing): (Vec<Tried>, Vec<Missing>) = Default::default();
        let mut passed_over: Vec<&str> = Vec::new();
        let found = match choice.parts {
            Parts::Any => functions(profile, choice.reach),
            Parts::Whole => whole_functions(profile),
        };
        for ((module, name), share) in found {
            if share < choice.share_percent_min {
                break;
            }
            let left_out = |why: &str| Missing { what: name.to_owned(), why: why.to_owned() };
            if sites.len() == choice.sites_max {
                passed_over.push(name);
                continue;
            }
            if name.starts_with(NO_NAME) {
                // Nobody could say what to do about it; who calls it has a name.
                missing.push(left_out("its code has no name; --inclusive tries who calls it"));
                continue;
            }
            if choice.reach == Reach::Inclusive && share > WHOLE_PERCENT {
                missing.push(left_out("nearly all samples lie in it: it is the program"));
                continue;
            }
            let site = match choice.parts {
                Parts::Any => self.in_profile(profile, module, name, choice.reach),
                Parts::Whole => self.whole(profile, module, name),
            };
            match site {
                // One that is all within another is the same experiment.
                Some(site) => match sites.iter_mut().find(|other| same_code(other, &site)) {
                    // Two names of one function, which the linker folded: one site, under both.
                    Some(other) if is_folded(other, &site) => {
                        other.site.name += &format!(" = {}", user_name(name));
                    }
                    Some(_) => missing.push(left_out("another site is the same code")),
                    None => sites.push(site),
                },
                None => missing.push(left_out("its code was not found in the running process")),
            }
        }
        if choice.parts == Parts::Any {
            sites.extend(self.lines(profile, &sites, choice));
        }
        missing.extend(passed_over_in_words(&passed_over));
        sites.iter_mut().for_each(|site| self.weigh(site, profile));
        (sites, missing)
    }

    /// Fills in what a profile knows of a site: its share, its hottest lines, whether it waits in a loop.
    pub fn weigh(&self, tried: &mut Tried, profile: &Profile) {
        let Place::Code { ranges, .. } = &tried.site.place else { return };
        let all = samples(profile);
        let is_in =
            |frame: &Frame| self.address(profile, frame).is_some_and(|address| holds(ranges, address));
        let (mut hits, mut lines, mut at_addresses) = (0, HashMap::<(&str, u32), u64>::new(), Vec::new());
        for stack in &profile.stacks {
            let Some(frame) = reached(profile, stack, tried.site.reach).find(|frame| is_in(frame)) else {
                continue;
            };
            hits += stack.samples;
            if let (Some(file), Some(line)) = (&frame.file, frame.line) {
                *lines.entry((file, line)).or_default() += stack.samples;
            }
            at_addresses.extend(self.address(profile, frame).map(|address| (address, stack.samples)));
        }
        let percent = |samples: u64| 100.0 * samples as f64 / all.max(1) as f64;
        let mut lines: Vec<HotLine> = lines
            .into_iter()
            .map(|((file, line), samples)| HotLine {
                file: file.to_owned(),
                line,
                share_percent: percent(samples),
            })
            .collect();
        lines.sort_by(|a, b| b.share_percent.total_cmp(&a.share_percent).then_with(|| a.line.cmp(&b.line)));
        lines.truncate(HOT_LINES_MAX);
        tried.share_percent = Some(percent(hits));
        tried.source.callees_percent = (tried.site.reach == Reach::Own)
            .then(|| self.inclusive_percent(ranges, profile) - percent(hits))
            .filter(|callees| *callees >= CALLEES_PERCENT_MIN);
        tried.source.hot_lines = lines;
        let waits = || self.mostly_waits(ranges, &at_addresses);
        tried.is_spinning = tried.site.reach == Reach::Own && waits();
    }

    /// Samples with this code anywhere on their stacks, percent.
    fn inclusive_percent(&self, ranges: &[Range<u64>], profile: &Profile) -> f64 {
        let is_in =
            |frame: &Frame| self.address(profile, frame).is_some_and(|address| holds(ranges, address));
        let on = profile.stacks.iter().filter(|stack| reached(profile, stack, Reach::Inclusive).any(is_in));
        let hits: u64 = on.map(|stack| stack.samples).sum();
        100.0 * hits as f64 / samples(profile).max(1) as f64
    }

    /// What of the samples lies in loops that wait, whether they are tried or not.
    #[must_use]
    pub fn spinning(&self, profile: &Profile) -> Spinning {
        let heavy =
            functions(profile, Reach::Own).into_iter().filter(|(_, share)| *share >= SPINNING_OF_PERCENT);
        let mut spinning = Spinning::default();
        for ((module, name), share) in heavy {
            let Some(mut tried) = self.in_profile(profile, module, name, Reach::Own) else { continue };
            self.weigh(&mut tried, profile);
            let Place::Code { ranges, .. } = &tried.site.place else { continue };
            if tried.is_spinning {
                spinning.percent += share;
            }
            spinning.loops.extend(ranges.iter().flat_map(|range| self.waiting_loops(range)));
        }
        spinning
    }

    /// Whether more than half of the samples lie in loops that only wait.
    fn mostly_waits(&self, ranges: &[Range<u64>], samples: &[(u64, u64)]) -> bool {
        let loops: Vec<Range<u64>> = ranges.iter().flat_map(|range| self.waiting_loops(range)).collect();
        let all: u64 = samples.iter().map(|(_, count)| count).sum();
        let waiting: u64 =
            samples.iter().filter(|(address, _)| holds(&loops, *address)).map(|(_, count)| count).sum();
        2 * waiting > all
    }

    fn waiting_loops(&self, range: &Range<u64>) -> Vec<Range<u64>> {
        let bytes = |image: &Mapped| {
            let length = (range.end - range.start).min(entry::CODE_BYTES_MAX);
            image.elf.bytes_at(range.start.checked_sub(image.bias)?, length)
        };
        // Ranges lie in the file whose code is there.
        self.images
            .iter()
            .find_map(bytes)
            .map_or_else(Vec::new, |code| waiting::waiting_loops(&code, range.start))
    }

    /// The running address of a frame.
    fn address(&self, profile: &Profile, frame: &Frame) -> Option<u64> {
        Some(frame.address.wrapping_add(self.image_of(profile, frame.module?)?.bias))
    }

    pub(super) fn image_of(&self, profile: &Profile, module: u32) -> Option<&Mapped> {
        let path = &profile.modules.get(module as usize)?.path;
        self.images.iter().find(|image| image.path == *path)
    }

    /// A function as a profile names it: by its name, or by an address within it where only the unwind tables know it.
    fn in_profile(&self, profile: &Profile, module: u32, name: &str, reach: Reach) -> Option<Tried> {
        let image = self.image_of(profile, module)?;
        let of_name = image.debug().functions.iter().filter(|function| is_name(function, name));
        let mut found: Vec<_> = of_name.collect();
        let met = met_at(profile, (module, name), reach);
        let samples = |function: &Function| -> u64 {
            met.iter().filter(|(at, _)| holds(&function.ranges, *at)).map(|(_, samples)| samples).sum()
        };
        // Files have functions of one name that have nothing to do with each other.
        if let Some(meant) = found.iter().copied().min_by_key(|function| Reverse(samples(function))) {
            found.retain(|function| are_one(function, meant));
            return Some(image.of_functions(&found, reach));
        }
        let is_it = |frame: &&Frame| frame.module == Some(module) && frame.name == name;
        let address = profile.frames.iter().find(is_it)?.address;
        let holding = image.debug().functions.iter().filter(|function| holds(&function.ranges, address));
        let mut site = image.of_functions(&[holding.min_by_key(|function| size(&function.ranges))?], reach);
        site.site.name = user_name(name).to_owned();
        Some(site)
    }

    /// The code that is entered at a function's beginning, whatever the compiler folded into it; of all functions that
    /// have this name, since a profile does not distinguish them.
    fn whole(&self, profile: &Profile, module: u32, name: &str) -> Option<Tried> {
        let image = self.image_of(profile, module)?;
        let is_it = |frame: &&Frame| frame.module == Some(module) && frame.name == name && !frame.inlined;
        let mut found: Vec<Function> = Vec::new();
        for address in profile.frames.iter().filter(is_it).map(|frame| frame.address) {
            if found.iter().any(|function| holds(&function.ranges, address)) {
                continue;
            }
            let around = |function: &Function| {
                entered_around(function, address).map(|range| (function.clone(), range))
            };
            if let Some((function, range)) = image.debug().functions.iter().find_map(around) {
                found.push(Function { ranges: vec![range], ..function });
            }
        }
        if found.is_empty() {
            return None;
        }
        let mut site = image.of_functions(&found.iter().collect::<Vec<_>>(), Reach::Own);
        site.site.name = name.to_owned();
        Some(site)
    }

    /// Lines of the heaviest functions, where there is room.
    fn lines(&self, profile: &Profile, sites: &[Tried], choice: &Choice) -> Vec<Tried> {
        let all = samples(profile).max(1) as f64;
        let mut of_line: HashMap<(&str, u32, &str), u64> = HashMap::new();
        let mut of_function: HashMap<&str, u64> = HashMap::new();
        for stack in &profile.stacks {
            let Some(frame) = reached(profile, stack, Reach::Own).next() else { continue };
            *of_function.entry(&frame.name).or_default() += stack.samples;
            if let (Some(file), Some(line)) = (&frame.file, frame.line) {
                *of_line.entry((file, line, &frame.name)).or_default() += stack.samples;
            }
        }
        let percent = |samples: u64| 100.0 * samples as f64 / all;
        let worth = |(line, samples): &(&(&str, u32, &str), &u64)| {
            let function = of_function[line.2];
            percent(**samples) >= choice.share_percent_min
                && percent(function) >= LINES_OF_PERCENT
                && (**samples as f64) < LINE_SHARE_MAX * function as f64
        };
        let mut found: Vec<_> = of_line.iter().filter(worth).collect();
        found.sort_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.cmp(b.0)));
        let room = choice.sites_max.saturating_sub(sites.len());
        found
            .into_iter()
            .filter_map(|((file, line, _), _)| self.line(file, *line, Reach::Own).ok())
            .take(room)
            .collect()
    }
}

/// Where samples met a function of this name, as its file counts addresses, and how many each.
fn met_at(profile: &Profile, (module, name): Name<'_>, reach: Reach) -> Vec<(u64, u64)> {
    let is_it = |frame: &&Frame| frame.module == Some(module) && frame.name == name;
    let of = |stack| reached(profile, stack, reach).find(is_it).map(|frame| (frame.address, stack.samples));
    profile.stacks.iter().filter_map(of).collect()
}

/// Functions by their share of the samples, percent, the greatest first.
pub(super) fn functions(profile: &Profile, reach: Reach) -> Vec<(Name<'_>, f64)> {
    let mut found: HashMap<Name<'_>, u64> = HashMap::new();
    for stack in &profile.stacks {
        let mut counted = HashSet::new();
        for frame in reached(profile, stack, reach).filter(|frame| !is_toolchain(frame)) {
            let Some(module) = frame.module.filter(|_| counted.insert((frame.module, &frame.name))) else {
                continue;
            };
            *found.entry((module, &frame.name)).or_default() += stack.samples;
        }
    }
    let all = samples(profile).max(1) as f64;
    let mut found: Vec<(Name<'_>, f64)> =
        found.into_iter().map(|(name, samples)| (name, 100.0 * samples as f64 / all)).collect();
    found.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    found
}

/// The stretch of a function that holds this address and begins where the function is called.
fn entered_around(function: &Function, address: u64) -> Option<Range<u64>> {
    let is_called = |range: &&Range<u64>| function.starts.iter().any(|start| range.contains(start));
    function.ranges.iter().filter(is_called).find(|range| range.contains(&address)).cloned()
}

/// Functions by their share of the samples as [`shares`] divides them; kernel threads have none.
fn whole_functions(profile: &Profile) -> Vec<(Name<'_>, f64)> {
    let all = samples(profile).max(1) as f64;
    let user = shares(profile).into_iter().filter_map(|share| Some(((share.module?, share.name), share)));
    user.map(|(name, share)| (name, 100.0 * share.samples as f64 / all)).collect()
}

/// Whether a frame is what the compiler's own headers or library folded into a function of the user's.
fn is_toolchain(frame: &Frame) -> bool {
    let is_in = |file: &String| TOOLCHAIN.iter().any(|folder| file.contains(folder));
    frame.inlined && frame.file.as_ref().is_some_and(is_in)
}

/// One line for all that was not tried because others have more samples.
fn passed_over_in_words(names: &[&str]) -> Option<Missing> {
    let first: Vec<&str> = names.iter().take(PASSED_OVER_MAX).copied().collect();
    let rest = names.len().saturating_sub(first.len());
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    (!names.is_empty()).then(|| Missing {
        what: format!("{}{more}", first.join(", ")),
        why: "others have more samples; name one with --site to have it tried".to_owned(),
    })
}

/// The user frames of a stack that count: the innermost code with what was folded into it, or all of them; the innermost
/// first.
fn reached<'p>(profile: &'p Profile, stack: &'p Stack, reach: Reach) -> impl Iterator<Item = &'p Frame> {
    let user = stack.frames.iter().rev().filter_map(|at| profile.frames.get(*at as usize));
    let mut beyond = false;
    user.filter(|frame| frame.origin == Origin::User).take_while(move |frame| {
        let counts = reach == Reach::Inclusive || !beyond;
        beyond |= !frame.inlined;
        counts
    })
}

fn samples(profile: &Profile) -> u64 {
    profile.stacks.iter().map(|stack| stack.samples).sum()
}

fn holds(ranges: &[Range<u64>], address: u64) -> bool {
    ranges.iter().any(|range| range.contains(&address))
}

fn size(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|range| range.end - range.start).sum()
}

fn same_code(a: &Tried, b: &Tried) -> bool {
    match (&a.site.place, &b.site.place) {
        (Place::Code { ranges: a, entries: from }, Place::Code { ranges: b, entries: to }) => {
            a == b || from.iter().any(|entry| to.contains(entry))
        }
        _ => false,
    }
}

/// Whether two functions are entered at the same place.
fn is_folded(a: &Tried, b: &Tried) -> bool {
    match (&a.site.place, &b.site.place) {
        (Place::Code { entries: a, .. }, Place::Code { entries: b, .. }) => {
            a.iter().any(|entry| b.contains(entry))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_users_know() {
        let known = ["__GI___libc_write", "__libc_read", "__GI_memcpy", "main", "__GI_", "std::io::write"];
        assert_eq!(known.map(user_name), ["write", "read", "memcpy", "main", "__GI_", "std::io::write"]);
    }

    #[test]
    fn what_a_compilers_header_folded_into_a_function_is_that_functions_code() {
        let frame = |file: &str, inlined| Frame { file: Some(file.to_owned()), inlined, ..Frame::default() };
        assert!(is_toolchain(&frame("/usr/lib/gcc/x86_64-linux-gnu/12/include/emmintrin.h", true)));
        assert!(!is_toolchain(&frame("/usr/include/c++/12/bits/stl_tree.h", false)));
        assert!(!is_toolchain(&frame("/home/me/app/main.c", true)));
    }

    #[test]
    fn many_that_were_not_tried_are_one_line() {
        let names: Vec<String> = (0..30).map(|at| format!("f{at}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let said = passed_over_in_words(&names).expect("thirty");
        assert_eq!(said.what, "f0, f1, f2, f3, f4 and 25 more");
        assert_eq!(passed_over_in_words(&[]), None);
    }
}
