//! Lines as other servers write them, and lines of whatever a client sends.
#![allow(clippy::unwrap_used)]
use super::*;
use dyno_measure::Prng;
use dyno_proto::http1::request::{self, Parsed, Slots};

fn entry<'e>(dates: &'e LogDates, request: Seen<'e>) -> Entry<'e> {
    let client = Some("127.0.0.1".parse().unwrap());
    Entry { client, dates, request, status: 200, body_bytes: 27 }
}

/// The line of a request in a format, and the same of one that was answered later.
fn line(format: &str, text: &[u8]) -> String {
    let format: LogFormat = format.parse().unwrap();
    let limits =
        request::Limits { line_bytes_max: 64 << 10, head_bytes_max: 128 << 10, ..Default::default() };
    let mut slots = Slots::new(&limits);
    let Ok(Parsed::Whole { head, .. }) = request::parse(text, &limits, &mut slots) else {
        panic!("{}", text.escape_ascii())
    };
    let dates = LogDates::new(1_795_225_078);
    let (mut line, mut later) = (Vec::new(), Vec::new());
    put(&mut line, &format, &entry(&dates, Seen::Head(&head)), 7);
    let kept = Kept::new(&format, &head, None);
    put(&mut later, &format, &entry(&dates, Seen::Kept(&kept)), 7);
    assert_eq!(line, later, "a request that is answered later has the same line");
    String::from_utf8(line).unwrap()
}

fn refused(format: &str) -> String {
    let dates = LogDates::new(1_795_225_078);
    let mut line = Vec::new();
    let entry = Entry { client: None, ..entry(&dates, Seen::Nothing) };
    put(&mut line, &format.parse().unwrap(), &Entry { status: 400, ..entry }, 7);
    String::from_utf8(line).unwrap()
}

const REQUEST: &[u8] = b"GET /a/b?c=d&e HTTP/1.1\r\nHost: Example.org:8080\r\nReferer: http://x/\"y\"\r\n\
    User-Agent: M\xc3\xbcnze \xff \xf0\x9f\x98\x80\r\nX-Two:\r\n\r\n";

#[test]
fn the_usual_formats_read_as_other_servers_write_them() {
    let common = "127.0.0.1 - - [21/Nov/2026:01:37:58 +0000] \"GET /a/b?c=d&e HTTP/1.1\" 200 27";
    assert_eq!(line("common", REQUEST), format!("{common}\n"));
    let agent = "M\\xC3\\xBCnze \\xFF \\xF0\\x9F\\x98\\x80";
    let combined = format!("{common} \"http://x/\\x22y\\x22\" \"{agent}\"\n");
    assert_eq!(line("combined", REQUEST), combined);
    assert_eq!(refused("combined"), "- - - [21/Nov/2026:01:37:58 +0000] \"-\" 400 27 \"-\" \"-\"\n");
}

#[test]
fn a_line_of_json_is_an_object_of_the_fields() {
    assert_eq!(
        line("json", REQUEST),
        "{\"time_iso8601\":\"2026-11-21T01:37:58+00:00\",\"remote_addr\":\"127.0.0.1\",\"request_method\":\"GET\",\
         \"request_uri\":\"/a/b?c=d&e\",\"server_protocol\":\"HTTP/1.1\",\"status\":200,\"body_bytes_sent\":27,\
         \"http_host\":\"Example.org:8080\",\"http_referer\":\"http://x/\\\"y\\\"\",\
         \"http_user_agent\":\"M\\u00fcnze \\ufffd \\ud83d\\ude00\"}\n"
    );
    assert_eq!(
        refused("json:status,request,http_x,remote_addr"),
        "{\"status\":400,\"request\":null,\"http_x\":null,\"remote_addr\":null}\n"
    );
}

#[test]
fn each_field_says_what_the_manual_has() {
    for (field, says) in [
        ("remote_addr", "127.0.0.1"),
        ("remote_user", "-"),
        ("time_local", "21/Nov/2026:01:37:58 +0000"),
        ("time_iso8601", "2026-11-21T01:37:58+00:00"),
        ("request", "GET /a/b?c=d&e HTTP/1.1"),
        ("request_method", "GET"),
        ("request_uri", "/a/b?c=d&e"),
        ("uri", "/a/b"),
        ("args", "c=d&e"),
        ("query_string", "c=d&e"),
        ("server_protocol", "HTTP/1.1"),
        ("scheme", "http"),
        ("host", "Example.org"),
        ("status", "200"),
        ("body_bytes_sent", "27"),
        ("pid", "7"),
        ("http_host", "Example.org:8080"),
        ("http_x_two", "-"),
        ("http_absent", "-"),
    ] {
        assert_eq!(line(&format!("<${field}>"), REQUEST), format!("<{says}>\n"), "{field}");
    }
    let told = LogFormat::fields().count();
    assert_eq!(told, 16, "a field that is new here is told of above and in the manual");
    assert_eq!(line("$host $uri $args", b"GET /? HTTP/1.1\r\nHost: [::1]:80\r\n\r\n"), "[::1] / -\n");
    assert_eq!(line("$host $uri", b"GET http://x?y HTTP/1.1\r\nHost: x\r\n\r\n"), "x /\n");
}

/// Bytes that a client may send, those that could end a line, a value or an escape above all.
fn evil(rng: &mut Prng, length: usize, is_target: bool) -> Vec<u8> {
    const MARKS: &[u8] = b"\"\\'{}:,$x- \t\xc2\x85\xe2\x80\xa8\xff\x80\xf0\x9f";
    let byte = |rng: &mut Prng| match rng.below(3) {
        0 => MARKS[rng.below(MARKS.len() as u64) as usize],
        1 => b'a',
        _ => rng.below(256) as u8,
    };
    let may_be = |byte: u8| match is_target {
        // What the parser lets through in a target and in a field's value.
        true => (0x21..=0x7e).contains(&byte) && byte != b'%' && byte != b'#',
        false => byte == b'\t' || (byte >= 0x20 && byte != 0x7f),
    };
    (0..length).map(|_| byte(rng)).map(|byte| if may_be(byte) { byte } else { b'z' }).collect()
}

/// What the parser refuses is told with nothing of it, so what a line tells has passed it. A line must hold whatever
/// comes all the same: here nothing is checked before.
#[test]
fn whatever_was_sent_is_one_line_and_one_object() {
    let seed = 0x106_f00d;
    let mut rng = Prng::new(seed);
    let limits =
        request::Limits { line_bytes_max: 64 << 10, head_bytes_max: 128 << 10, ..Default::default() };
    let text: LogFormat = "$request_uri \"$request\" \"$http_a\" $host".parse().unwrap();
    let formats = ["common", "combined", "json", "json:request,http_a,args,host"];
    let formats: Vec<LogFormat> =
        formats.iter().map(|format| format.parse().unwrap()).chain([text]).collect();
    let dates = LogDates::new(0);
    for round in 0..3_000 {
        let length = if round % 8 == 0 { rng.below(9_000) } else { rng.below(60) } as usize;
        let target = [b"/", &*evil(&mut rng, length, true)].concat();
        let length = if round % 7 == 0 { rng.below(9_000) } else { rng.below(60) } as usize;
        let value = evil(&mut rng, length, false);
        let text = [
            b"GET ",
            &*target,
            b" HTTP/1.1\r\nHost: h\r\nA: ",
            &value,
            b"\r\nReferer: ",
            &value,
            b"\r\n\r\n",
        ];
        let (text, mut slots) = (text.concat(), Slots::new(&limits));
        let parsed = request::parse(&text, &limits, &mut slots);
        let Ok(Parsed::Whole { head, .. }) = parsed else { continue };
        for format in &formats {
            let mut line = Vec::new();
            put(&mut line, format, &entry(&dates, Seen::Head(&head)), 7);
            is_one_line(format, &line);
        }
    }
}

#[track_caller]
fn is_one_line(format: &LogFormat, line: &[u8]) {
    assert!(line.len() <= RECORD_BYTES_MAX && line.ends_with(b"\n"), "{} bytes", line.len());
    let text = std::str::from_utf8(&line[..line.len() - 1]).unwrap();
    assert!(text.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{text}");
    if format.style == Style::Json {
        let object: serde_json::Value = serde_json::from_str(text).unwrap();
        assert_eq!(object["status"].as_u64().unwrap_or(200), 200, "{text}");
    } else {
        let quotes = text.matches('"').count();
        let meant = format.to_string().replace("common", "\"\"").replace("combined", "\"\"\"\"\"\"");
        assert_eq!(quotes, meant.matches('"').count(), "{text}");
    }
}

#[test]
fn a_kept_request_of_any_bytes_is_one_line_too() {
    let dates = LogDates::new(0);
    let every: Box<[u8]> = (0..=255).collect();
    for (format, length) in [("combined", 256), ("json", 256), ("combined", 9_000), ("json", 9_000)] {
        let format: LogFormat = format.parse().unwrap();
        let bytes: Box<[u8]> = every.iter().copied().cycle().take(length).collect();
        let headers = format.headers.iter().map(|_| Some(bytes.clone())).collect();
        let (method, target, host) = (b"GET".to_vec().into(), bytes.clone(), Some(bytes));
        let version = b"HTTP/1.1";
        let kept = Kept { client: None, method, target, path_bytes: 3, version, host, headers };
        let mut line = Vec::new();
        put(&mut line, &format, &entry(&dates, Seen::Kept(&kept)), 7);
        is_one_line(&format, &line);
    }
}

#[test]
fn what_is_cut_says_so_and_leaves_room_for_the_rest() {
    let long = "x".repeat(8_000);
    let request =
        format!("GET /{long}? HTTP/1.1\r\nHost: h\r\nReferer: {long}\r\nUser-Agent: {long}\r\n\r\n");
    let combined = line("combined", request.as_bytes());
    assert_eq!(combined.len(), RECORD_BYTES_MAX);
    assert_eq!(combined.matches("\\...").count(), 3);
    assert!(
        combined.contains("x\\... HTTP/1.1\" 200 27 \"xxx") && combined.ends_with("x\\...\"\n"),
        "{combined}"
    );
    let json = line("json", request.as_bytes());
    assert!(json.ends_with("x\",\"truncated\":true}\n"), "{json}");
    let object: serde_json::Value = serde_json::from_str(&json).unwrap();
    let lengths =
        ["request_uri", "http_referer", "http_user_agent"].map(|key| object[key].as_str().unwrap().len());
    assert!(lengths.iter().all(|length| *length > 200) && object["status"] == 200, "{lengths:?}");
    let escapes = "\"".repeat(3_000);
    let request = format!("GET / HTTP/1.1\r\nHost: h\r\nA: {escapes}\r\n\r\n");
    for blanks in 0..8 {
        let cut = line(&format!("{}$http_a", " ".repeat(blanks)), request.as_bytes());
        assert!(cut.ends_with("\\x22\\...\n"), "{cut}");
    }
}

#[test]
fn the_longest_line_of_any_format_fits() {
    let client = Some("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff".parse().unwrap());
    let dates = LogDates::new(u64::MAX);
    let all: String = LogFormat::fields().map(|name| format!("${name}")).collect();
    for format in [all, format!("json:{}", LogFormat::fields().collect::<Vec<_>>().join(","))] {
        let mut line = Vec::new();
        let entry =
            Entry { client, dates: &dates, request: Seen::Nothing, status: u16::MAX, body_bytes: u64::MAX };
        put(&mut line, &format.parse().unwrap(), &entry, u32::MAX);
        assert!(line.ends_with(b"\n"));
    }
}
