//! httparse as the oracle: whatever is accepted here, it accepts too, and understands in the same way.

use crate::support::{Chance, Outcome, Request, read, shown};
use dyno_proto::http1::request::Version;

const TOKEN: &[u8] = b"!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const TARGET: &[u8] = b"/abcXYZ019-._~!$&'()*+,;=:@?|{}[]^`\"<>\\";
const VALUE: &[u8] = b" \tabcXYZ019-._~!$&'()*+,;=:@?|{}[]^`\"<>\\/#%\x80\xc3\xa9\xff";
const REQUESTS: usize = 20_000;

/// A request that is valid by its grammar.
fn valid_request(chance: &mut Chance) -> Vec<u8> {
    let mut bytes = b"\r\n".repeat(chance.below(2));
    bytes.extend_from_slice(&method(chance));
    bytes.extend_from_slice(b" ");
    bytes.extend_from_slice(&target(chance));
    bytes.extend_from_slice(chance.one_of(&[b" HTTP/1.1\r\n", b" HTTP/1.0\r\n"]));
    let fields = chance.below(12);
    let host_at = chance.below(fields + 1);
    for field in 0..=fields {
        let line = if field == host_at { host(chance) } else { other_field(chance) };
        bytes.extend_from_slice(&line);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"\r\n");
    bytes
}

fn method(chance: &mut Chance) -> Vec<u8> {
    match chance.below(3) {
        0 => b"GET".to_vec(),
        1 => chance.one_of(&["POST", "PUT", "HEAD", "DELETE", "PATCH", "TRACE"]).as_bytes().to_vec(),
        _ => [&[chance.one_of(TOKEN)], &chance.bytes(TOKEN, 31)[..]].concat(),
    }
}

fn target(chance: &mut Chance) -> Vec<u8> {
    let mut target = b"/".to_vec();
    for _ in 0..chance.below(4) {
        target.extend_from_slice(&chance.bytes(TARGET, 30));
        if chance.below(3) == 0 {
            target.extend_from_slice(format!("%{:02x}", chance.below(256)).as_bytes());
        }
    }
    target
}

fn host(chance: &mut Chance) -> Vec<u8> {
    let name = chance.one_of(&["Host", "host", "HOST", "hOsT"]);
    let blank = chance.one_of(&["", " ", "  ", "\t"]);
    let host = chance.one_of(&["127.0.0.1", "a.example", "[::1]", "a_b!", "x"]);
    let port = chance.one_of(&["", ":", ":80", ":8080", ":65535"]);
    let end = chance.one_of(&["", "", " ", "\t"]);
    format!("{name}:{blank}{host}{port}{end}").into_bytes()
}

fn other_field(chance: &mut Chance) -> Vec<u8> {
    let name = [b"x", &chance.bytes(TOKEN, 24)[..]].concat();
    let value = chance.bytes(VALUE, 80);
    [&name[..], b":", chance.one_of(&[&b""[..], b" ", b"\t "]), &value].concat()
}

/// Checks an accepted request against the oracle's reading of the same bytes.
pub(crate) fn agree(bytes: &[u8], ours: &Request) {
    let mut headers = [httparse::EMPTY_HEADER; 128];
    let mut theirs = httparse::Request::new(&mut headers);
    let status = theirs.parse(bytes);
    assert_eq!(status, Ok(httparse::Status::Complete(ours.used)), "{}", shown(bytes));
    assert_eq!(theirs.method, Some(ours.method.as_str()), "{}", shown(bytes));
    let path = theirs.path.unwrap().as_bytes();
    // An absolute target is cut here, and replaced when it has no path.
    let is_absolute = path.get(..4).is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"http"));
    assert!(path.ends_with(&ours.target) || is_absolute, "{}", shown(bytes));
    assert_eq!(theirs.version, Some(u8::from(ours.version == Version::Http11)), "{}", shown(bytes));
    let fields: Vec<_> = theirs.headers.iter().map(|field| (field.name.as_bytes(), field.value)).collect();
    let own: Vec<_> = ours.headers.iter().map(|(name, value)| (&name[..], &value[..])).collect();
    assert_eq!(own, fields, "{}", shown(bytes));
}

#[test]
fn valid_requests_are_accepted_and_read_as_the_oracle_reads_them() {
    let mut chance = Chance::new(0x0dd5_eed5);
    for _ in 0..REQUESTS {
        let bytes = valid_request(&mut chance);
        match read(&bytes) {
            Outcome::Whole(request) => agree(&bytes, &request),
            other => panic!("{other:?} for {}", shown(&bytes)),
        }
    }
}

#[test]
fn what_is_accepted_after_a_mutation_is_accepted_by_the_oracle() {
    let mut chance = Chance::new(0x5eed_0002);
    let mut accepted = 0;
    for _ in 0..REQUESTS {
        let mut bytes = valid_request(&mut chance);
        for _ in 0..=chance.below(2) {
            let at = chance.below(bytes.len());
            bytes[at] = chance.one_of(b"\r\n\t :%/?#\0\x7f\x80aA0,;");
        }
        // The oracle knows no later minor versions and reads no further than its own version does.
        if let Outcome::Whole(request) = read(&bytes) {
            agree(&bytes, &request);
            accepted += 1;
        }
    }
    assert!(accepted > REQUESTS / 10, "only {accepted} mutants were accepted: the test says nothing");
}
