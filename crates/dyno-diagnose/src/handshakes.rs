//! TLS handshakes in a libssl that has lost its names.
//!
//! Distributions strip it, and what a program calls goes on by jumps, so that nothing on the stack says what is done. But keys of
//! numbers (RSA, elliptic curves) are used in handshakes alone: what is sent afterwards needs none. So whatever libssl has done
//! with such keys, by functions of libcrypto that programs call and that have kept their names, belongs to one. That is the least
//! that a handshake takes. Called once, before all rules.

use std::borrow::Cow;

use dyno_record::observation::Observation;
use dyno_record::profile::{Frame, Profile, Stack};

use super::{makes, names};

const LIBRARIES: &[&str] = &["*/libssl.so*", "*/libssl-*.so*"];

/// Work on keys of numbers. What hashes is not in it: records are hashed as well.
const KEYS: &[&str] = &[
    "BN_*",
    "EC_*",
    "ECDSA_*",
    "ECDH_*",
    "RSA_*",
    "DH_*",
    "EVP_PKEY_*",
    "EVP_DigestSign",
    "EVP_DigestVerify*",
    "X509_verify_cert*",
];

/// The observation with a frame for the handshake in each stack in which libssl works on keys; the observation itself where there is
/// none.
pub(super) fn named(seen: &Observation) -> Cow<'_, Observation> {
    let has_any = |profile: &Profile| profile.stacks.iter().any(|stack| libssl_at(profile, stack).is_some());
    if !seen.on_cpu.as_ref().is_some_and(has_any) {
        return Cow::Borrowed(seen);
    }
    let mut seen = seen.clone();
    if let Some(profile) = &mut seen.on_cpu {
        name(profile);
    }
    Cow::Owned(seen)
}

fn name(profile: &mut Profile) {
    let places: Vec<Option<usize>> = profile.stacks.iter().map(|stack| libssl_at(profile, stack)).collect();
    let handshake = u32::try_from(profile.frames.len()).unwrap_or(u32::MAX);
    let mut of_libssl = None;
    for (stack, at) in profile.stacks.iter_mut().zip(places) {
        let Some(at) = at else { continue };
        of_libssl = of_libssl.or(profile.frames[stack.frames[at] as usize].module);
        stack.frames.insert(at + 1, handshake);
    }
    profile.frames.push(Frame { name: makes::HANDSHAKE.to_owned(), module: of_libssl, ..Frame::default() });
}

/// Of the frames of a stack, from its root, the first one of libssl, where that has keys worked on and nothing tells that already.
fn libssl_at(profile: &Profile, stack: &Stack) -> Option<usize> {
    let frame = |at: &u32| &profile.frames[*at as usize];
    let is_libssl = |frame: &Frame| {
        let module = frame.module.and_then(|at| profile.modules.get(at as usize));
        module.is_some_and(|module| names::is(&module.path, LIBRARIES))
    };
    let at = stack.frames.iter().position(|at| is_libssl(frame(at)))?;
    let on_keys = stack.frames[at..].iter().any(|at| names::is(&frame(at).name, KEYS));
    let is_told = || stack.frames.iter().any(|at| makes::is(&frame(at).name));
    (on_keys && !is_told()).then_some(at)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use dyno_record::finding::Class;
    use dyno_record::profile::Module;

    use crate::scene::Scene;

    /// A server in whose stacks `0x6…` lies in the library of that path.
    fn told(path: &str, stack: &str, hundredths: u64) -> Option<String> {
        let mut scene = Scene::new(&[9.0, 9.0]).on(stack, hundredths).on("main;serve;rest", 100 - hundredths);
        let profile = scene.seen.on_cpu.as_mut().unwrap();
        profile.modules.push(Module { path: path.to_owned(), ..Module::default() });
        let module = u32::try_from(profile.modules.len() - 1).unwrap();
        for frame in profile.frames.iter_mut().filter(|frame| frame.name.starts_with("0x6")) {
            frame.module = Some(module);
        }
        let said = scene.diagnosed().findings;
        let found = said.into_iter().find(|one| one.class == Class::RepeatedSetup)?;
        Some(format!("{} at {}", found.summary, found.next[0].code.as_deref().unwrap_or_default()))
    }

    /// HAProxy's handshakes as Debian's libssl shows them. Planted faults: nothing is named (`has_any` of none); whoever signs makes a
    /// handshake; what hashes a record does; the place in libssl is the program's.
    #[test]
    fn keys_that_a_stripped_libssl_works_on_are_a_handshakes() {
        let libssl = "/usr/lib/x86_64-linux-gnu/libssl.so.3";
        let signs =
            "main;ssl_sock_io_cb;0x65ee0;EVP_DigestSignFinal;0x3370b0;BN_mod_exp_mont_consttime_x2;0x129760";
        let said = told(libssl, signs, 30).unwrap();
        assert!(
            said.starts_with("30 % of the CPU makes keys for new connections (TLS handshakes)"),
            "{said}"
        );
        assert!(said.ends_with("at ssl_sock_io_cb"), "{said}");
        assert_eq!(
            told("/usr/lib/x86_64-linux-gnu/libjwt.so.0", signs, 30),
            None,
            "it signs for something else"
        );
        let records = "main;ssl_sock_io_cb;0x65ee0;EVP_DigestSignFinal;0x3370b0;0x12";
        assert_eq!(told(libssl, records, 30), None, "it hashes what it sends");
        assert_eq!(told(libssl, signs, 19), None);
    }
}
