//! Allocators whose libraries have lost their names: whatever runs in such a file takes memory or gives it back.
//!
//! Distributions strip them, and only what programs call keeps a name. Called once, before all rules.

use std::borrow::Cow;

use dyno_record::observation::Observation;
use dyno_record::profile::{Frame, Profile};

use super::names;

/// Files with an allocator and nothing else.
const LIBRARIES: &[&str] = &["*/libjemalloc*", "*/libtcmalloc*", "*/libmimalloc*"];

/// The observation with each address in an allocator's library named by that library, as `names::ALLOCATOR` knows it; the
/// observation itself where there is none.
pub(super) fn named(seen: &Observation) -> Cow<'_, Observation> {
    let has_any = |profile: &Option<Profile>| {
        profile
            .as_ref()
            .is_some_and(|profile| profile.frames.iter().any(|frame| library(profile, frame).is_some()))
    };
    if !has_any(&seen.on_cpu) && !has_any(&seen.off_cpu) {
        return Cow::Borrowed(seen);
    }
    let mut seen = seen.clone();
    for profile in [&mut seen.on_cpu, &mut seen.off_cpu].into_iter().flatten() {
        let all: Vec<Option<String>> =
            profile.frames.iter().map(|frame| library(profile, frame).map(str::to_owned)).collect();
        for (frame, library) in profile.frames.iter_mut().zip(all) {
            if let Some(library) = library {
                frame.name = format!("{library}!{}", frame.name);
            }
        }
    }
    Cow::Owned(seen)
}

/// The name of the allocator's file that a frame without a name lies in.
fn library<'p>(profile: &'p Profile, frame: &Frame) -> Option<&'p str> {
    let module = profile.modules.get(frame.module.filter(|_| frame.name.starts_with("0x"))? as usize)?;
    names::is(&module.path, LIBRARIES).then(|| module.path.rsplit('/').next().unwrap_or(&module.path))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use dyno_record::finding::Class;
    use dyno_record::profile::Module;

    use crate::scene::Scene;

    /// Planted fault: `named` that names nothing.
    #[test]
    fn code_without_a_name_in_an_allocators_library_takes_memory() {
        let classes = |path: &str| {
            let mut scene = Scene::new(&[9.9]).on("main;0x26e70;0x36ab0", 60).on("main;work", 40);
            let profile = scene.seen.on_cpu.as_mut().unwrap();
            profile.modules.push(Module { path: path.to_owned(), ..Module::default() });
            let module = u32::try_from(profile.modules.len() - 1).unwrap();
            for frame in profile.frames.iter_mut().filter(|frame| frame.name.starts_with("0x")) {
                frame.module = Some(module);
            }
            scene.classes()
        };
        assert!(classes("/usr/lib/libjemalloc.so.2").contains(&Class::AllocationChurn));
        assert!(!classes("/usr/lib/libm.so.6").contains(&Class::AllocationChurn));
    }
}
