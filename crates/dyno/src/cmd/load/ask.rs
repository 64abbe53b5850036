//! The request and the right answer, from flags.

use std::path::Path;

use dyno_load::{Body, Expect, SessionPlan, Target, TargetError};
use dyno_record::digest::digest;
use dyno_sys::socket::Addr;

use crate::cli;
use dyno_lab::Failure;
use dyno_lab::chain;
use dyno_lab::file;

/// What `--expect` takes, for its errors.
const EXPECTATIONS: &str = "it takes status=200, body=TEXT, body=@FILE or body-sha256=HEX";

/// What is asked of whom.
pub(super) fn target(args: &cli::Load) -> Result<Target, Failure> {
    let mut builder = Target::builder(&args.url).method(&args.method);
    for field in &args.headers {
        let (name, value) = header(field)?;
        builder = builder.header(name, value);
    }
    if let Some(body) = &args.body {
        builder = builder.body(text_or_file(body)?);
    }
    if let Some(path) = &args.requests {
        builder = builder.requests(file::read(path)?);
    }
    if let Some(path) = &args.unix_socket {
        builder = builder.over(socket_file(path)?);
    }
    builder.build().map_err(|error| unusable(&error))
}

/// Where `--unix-socket` leads; whether somebody listens there is seen when it is connected.
fn socket_file(path: &Path) -> Result<Addr, Failure> {
    Addr::of_file(path).map_err(|error| {
        let failure = Failure::usage("--unix-socket cannot be used").because(&error);
        failure
            .likely("a socket file's path is short")
            .try_this("dyno load --unix-socket /run/dyno.sock http://localhost/")
    })
}

fn header(field: &str) -> Result<(&str, &str), Failure> {
    let Some((name, value)) = field.split_once(':') else {
        let failure = Failure::usage(format!("-H \"{field}\" has no colon"));
        return Err(failure
            .likely("a header field is 'Name: value'")
            .try_this("-H 'Accept: application/json'"));
    };
    Ok((name, value.trim_matches([' ', '\t'])))
}

/// `@FILE` is the file's bytes, anything else itself.
fn text_or_file(text: &str) -> Result<Vec<u8>, Failure> {
    match text.strip_prefix('@') {
        Some(path) => file::read(Path::new(path)),
        None => Ok(text.as_bytes().to_vec()),
    }
}

fn unusable(error: &TargetError) -> Failure {
    let failure = Failure::usage(chain(error));
    match error {
        TargetError::NotYetHttps { .. } => {
            failure.likely("TLS is not there yet").try_this("the server's plain http port, if it has one")
        }
        TargetError::Unresolved { host, .. } => failure
            .likely("the name is misspelt, or no resolver answers")
            .try_this(format!("getent hosts {host}")),
        TargetError::NoScheme { .. } | TargetError::BadUrl { .. } => failure
            .likely("a URL is http://HOST[:PORT][/PATH][?QUERY]")
            .try_this("dyno load http://127.0.0.1:8080/json"),
        TargetError::BadMethod { .. } | TargetError::BadHeader { .. } => failure
            .likely("a request with it would not be one request of HTTP/1.1")
            .try_this("dyno load --help"),
        TargetError::BadRequest { .. } => failure
            .likely("a request is its line, fields and an empty line, each ended by CR LF, then its body")
            .try_this(r"printf 'GET /json HTTP/1.1\r\nHost: a\r\n\r\n' > FILE"),
    }
}

/// What a right answer is.
pub(super) fn expect(words: &[String]) -> Result<Expect, Failure> {
    let mut expect = Expect::any();
    for word in words {
        let twice = match wanted(word)? {
            Wanted::Status(status) => expect.status.replace(status).is_some(),
            Wanted::Body(body) => expect.body.replace(body).is_some(),
        };
        if twice {
            let failure = Failure::usage(format!("--expect {word} expects the same thing a second time"));
            return Err(failure.likely("an answer has one status and one body").try_this("dyno load --help"));
        }
    }
    Ok(expect)
}

/// Names of what is asked and of what is expected. The host that the URL names is another one each time, and is left out.
pub(super) fn digests(args: &cli::Load, plan: &SessionPlan) -> [String; 2] {
    let asked = plan.target.all_requests();
    let host = format!("Host: {}\r\n", plan.target.host());
    let at = || asked.windows(host.len()).position(|bytes| bytes == host.as_bytes());
    let (before, after) = match args.requests.is_none().then(at).flatten() {
        Some(at) => (&asked[..at], &asked[at + host.len()..]),
        None => (&[][..], asked),
    };
    let fields = args.headers.iter().map(String::as_bytes);
    let status = plan.expect.status.map(|status| status.to_string()).unwrap_or_default();
    let [kind, body]: [&[u8]; 2] = match &plan.expect.body {
        None => [b"any", b""],
        Some(Body::Same) => [b"same", b""],
        Some(Body::Bytes(bytes)) => [b"bytes", bytes],
        Some(Body::Sha256(digest)) => [b"sha256", digest],
    };
    [digest([before, after].into_iter().chain(fields)), digest([status.as_bytes(), kind, body])]
}

enum Wanted {
    Status(u16),
    Body(Body),
}

fn wanted(word: &str) -> Result<Wanted, Failure> {
    let unclear = |why: &str| {
        let failure = Failure::usage(format!("--expect {word}: {why}"));
        failure.likely(EXPECTATIONS).try_this("--expect status=200")
    };
    match word.split_once('=') {
        Some(("status", status)) => {
            let status = status.parse().ok().filter(|status| (200..=599).contains(status));
            Ok(Wanted::Status(status.ok_or_else(|| unclear("no final status (200 to 599)"))?))
        }
        Some(("body", body)) => Ok(Wanted::Body(Body::Bytes(text_or_file(body)?))),
        Some(("body-sha256", hex)) => {
            let digest = sha256(hex).ok_or_else(|| unclear("64 hexadecimal digits are needed"))?;
            Ok(Wanted::Body(Body::Sha256(digest)))
        }
        Some((key, _)) => Err(unclear(&format!("nothing is called \"{key}\""))),
        None => Err(unclear("there is no equals sign")),
    }
}

fn sha256(hex: &str) -> Option<[u8; 32]> {
    let nibbles: Vec<u8> =
        hex.chars().map(|c| c.to_digit(16).map(|nibble| nibble as u8)).collect::<Option<_>>()?;
    let bytes: Vec<u8> = nibbles.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    // Two digits each: an odd one out would be lost by the chunks.
    if nibbles.len() == 64 { bytes.try_into().ok() } else { None }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::tests::load_args;
    use super::*;

    fn expected(words: &[&str]) -> Result<Expect, Failure> {
        expect(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn status_and_body_are_expected_together() {
        let wanted = Expect { status: Some(201), body: Some(Body::Bytes(b"a=b".to_vec())) };
        assert_eq!(expected(&["status=201", "body=a=b"]).unwrap(), wanted);
        assert_eq!(expected(&[]).unwrap(), Expect::any());
    }

    #[test]
    fn a_digest_is_64_hexadecimal_digits() {
        let hex = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015AD";
        let Some(Body::Sha256(bytes)) = expected(&[&format!("body-sha256={hex}")]).unwrap().body else {
            panic!("a digest is expected")
        };
        assert_eq!((bytes[0], bytes[31]), (0xba, 0xad));
        assert!(
            ["", "ab", &hex[1..], &format!("{hex}0"), &hex.replace('b', "g")]
                .iter()
                .all(|bad| sha256(bad).is_none())
        );
    }

    #[test]
    fn an_expectation_that_makes_no_sense_is_told_what_there_is() {
        for words in
            [&["status=ok"][..], &["status=100"], &["length=3"], &["200"], &["status=200", "status=201"]]
        {
            let lines = expected(words).unwrap_err().lines();
            assert_eq!(lines.lines().count(), 3, "{lines}");
        }
    }

    #[test]
    fn the_request_is_made_of_method_headers_and_body() {
        let args = load_args(&["--method", "POST", "-H", "X-A:  b ", "--body", "hi"]);
        let target = target(&args).unwrap();
        let wanted = "POST / HTTP/1.1\r\nHost: 127.0.0.1:1\r\nX-A: b\r\nContent-Length: 2\r\n\r\nhi";
        assert_eq!(String::from_utf8_lossy(target.request()), wanted);
    }

    /// Planted faults: the URL's host stands in the name, or its path and method are all that does.
    #[test]
    fn a_load_is_named_by_what_is_asked_and_expected_and_not_by_the_host() {
        let named = |words: &[&str]| {
            let args = load_args(words);
            digests(&args, &super::super::plan(&args, 1).unwrap().session)
        };
        let plain = named(&[]);
        assert_eq!(plain, named(&["-t1", "-c8"]));
        for words in [&["--body", "x"][..], &["-H", "Accept-Encoding: gzip"], &["-H", "Host: b"], &["-mHEAD"]]
        {
            let other = named(words);
            assert!(other[0] != plain[0] && other[1] == plain[1], "{words:?}");
        }
        for words in [&["--expect", "status=200"][..], &["--expect", "body=x"], &["--expect", "body="]] {
            let other = named(words);
            assert!(other[0] == plain[0] && other[1] != plain[1], "{words:?}");
        }
        let args = load_args(&[]);
        let elsewhere = cli::Load { url: "http://localhost:2/".into(), ..*load_args(&[]) };
        let session = |args: &cli::Load| super::super::plan(args, 1).unwrap().session;
        assert_eq!(digests(&args, &session(&args)), digests(&elsewhere, &session(&elsewhere)));
    }

    #[test]
    fn a_header_without_a_colon_and_a_missing_file_are_named() {
        let target_of = |path: &str| target(&load_args(&["--unix-socket", path]));
        let over = target_of("/run/x.sock").unwrap();
        assert_eq!((over.addr().to_string().as_str(), over.host()), ("unix:/run/x.sock", "127.0.0.1:1"));
        assert!(target_of(&"x".repeat(108)).unwrap_err().lines().contains("--unix-socket cannot be used"));
        assert!(target(&load_args(&["-H", "nonsense"])).unwrap_err().lines().contains("has no colon"));
        let lines = target(&load_args(&["--requests", "/nowhere/y"])).unwrap_err().lines();
        assert!(lines.contains("cannot read /nowhere/y"), "{lines}");
        let lines = target(&load_args(&["--body", "@/nowhere/x"])).unwrap_err().lines();
        assert!(lines.contains("cannot read /nowhere/x"), "{lines}");
    }
}
