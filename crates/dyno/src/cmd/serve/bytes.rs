//! `dyno serve --bytes-report`: the engine's account of its replies, with what the network adds and what a year of it costs.
//!
//! What TCP/IP adds is computed, not measured; each assumption is printed.

use std::fmt::Write;

use crate::cli::BytesFlags;
use dyno_engine::ReplyBytes;
use dyno_lab::Failure;
use dyno_measure::units::thousands;

/// Bytes of a reply in one segment: Ethernet's 1,500 without IPv4's 20, TCP's 20 and its timestamps' 12 (RFC 6691).
const SEGMENT_BYTES: u64 = 1_448;

/// Bytes of IPv4 and TCP with timestamps in front of each segment.
const HEADERS_BYTES: u64 = 52;

/// Segments that one acknowledgement answers (delayed acknowledgements, RFC 9293 §3.8.6.3).
const ACKNOWLEDGED: u64 = 2;

/// Seconds of a year of 365 days.
const YEAR_S: f64 = 31_536_000.0;

/// Files that are listed; of more the largest are.
const LISTED_MAX: usize = 40;

/// The report for what would be served.
///
/// # Errors
/// When nothing is served under the path.
pub(super) fn report(flags: &BytesFlags, all: &[ReplyBytes]) -> Result<String, Failure> {
    let path = flags.bytes_report.as_deref().unwrap_or_default();
    let chosen: Vec<&ReplyBytes> = all.iter().filter(|reply| path.is_empty() || reply.path == path).collect();
    if chosen.is_empty() {
        let what =
            if path.is_empty() { "no file is served".to_owned() } else { format!("{path} is no file here") };
        return Err(Failure::usage(what)
            .likely("a report is about the files of a folder, under the paths by which they are asked for")
            .try_this("dyno serve DIR --bytes-report, which lists them"));
    }
    Ok(written(flags, &chosen))
}

/// What one reply takes on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Wire {
    head: u64,
    body: u64,
    tcp_ip: u64,
    /// What the client sends for it.
    acknowledgements: u64,
}

impl Wire {
    fn of(reply: &ReplyBytes) -> Wire {
        let (head, body) = (reply.head_bytes(), reply.body_bytes);
        let segments = (head + body).div_ceil(SEGMENT_BYTES);
        let acknowledgements = segments.div_ceil(ACKNOWLEDGED) * HEADERS_BYTES;
        Wire { head, body, tcp_ip: segments * HEADERS_BYTES, acknowledgements }
    }

    fn sum(self) -> u64 {
        self.head + self.body + self.tcp_ip
    }
}

/// What so many bytes per reply come to in a year.
struct Year<'f> {
    flags: &'f BytesFlags,
}

impl Year<'_> {
    fn gigabytes(&self, bytes: f64) -> f64 {
        bytes * self.flags.requests_per_second * YEAR_S / 1e9
    }

    /// The cells of a row: gigabytes, and their price.
    fn cells(&self, bytes: f64) -> String {
        let gigabytes = self.gigabytes(bytes);
        let price = self.flags.price_per_gb.map(|price| format!(" {:>14}", thousands(gigabytes * price)));
        format!(" {:>12}{}", thousands(gigabytes), price.unwrap_or_default())
    }

    fn title(&self) -> String {
        let price = self.flags.price_per_gb.map_or("", |_| "   price a year");
        format!("    GB a year{price}")
    }
}

fn written(flags: &BytesFlags, replies: &[&ReplyBytes]) -> String {
    let year = Year { flags };
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{:>12} {:>12} {:>6} {:>10} {:>12}{}  file",
        "head",
        "body",
        "TLS",
        "TCP/IP",
        "sum",
        year.title()
    );
    let mut listed: Vec<&&ReplyBytes> = replies.iter().collect();
    listed.sort_by_key(|reply| std::cmp::Reverse(Wire::of(reply).sum()));
    for reply in listed.iter().take(LISTED_MAX) {
        let host = if reply.host == "*" { String::new() } else { format!("{} ", reply.host) };
        let coding = match reply.coding {
            "identity" => String::new(),
            coding => format!(" ({coding}; {} as it is)", thousands(reply.file_bytes as f64)),
        };
        let _ = writeln!(text, "{}  {host}{}{coding}", row(Wire::of(reply), &year), reply.path);
    }
    if listed.len() > LISTED_MAX {
        let _ = writeln!(text, "and {} smaller ones", thousands((listed.len() - LISTED_MAX) as f64));
    }
    if replies.len() > 1 {
        let _ = writeln!(text, "{}  on average, each asked as often", average(replies, &year));
    }
    text.push_str(&of_lines(replies, &year));
    text.push_str(&assumptions(flags, replies));
    text
}

fn row(wire: Wire, year: &Year<'_>) -> String {
    cells([wire.head, wire.body, 0, wire.tcp_ip, wire.sum()].map(|bytes| thousands(bytes as f64)))
        + &year.cells(wire.sum() as f64)
}

fn cells([head, body, tls, tcp_ip, sum]: [String; 5]) -> String {
    format!("{head:>12} {body:>12} {tls:>6} {tcp_ip:>10} {sum:>12}")
}

fn average(replies: &[&ReplyBytes], year: &Year<'_>) -> String {
    let mean = |of: fn(Wire) -> u64| {
        replies.iter().map(|reply| of(Wire::of(reply)) as f64).sum::<f64>() / replies.len() as f64
    };
    let sum = mean(Wire::sum);
    let means = [mean(|wire| wire.head), mean(|wire| wire.body), 0.0, mean(|wire| wire.tcp_ip), sum];
    cells(means.map(thousands)) + &year.cells(sum)
}

/// What each line of a head takes, on average over the replies: what could be said more briefly, or not at all.
fn of_lines(replies: &[&ReplyBytes], year: &Year<'_>) -> String {
    let mut lines: Vec<(&str, u64)> = Vec::new();
    for (name, bytes) in replies.iter().flat_map(|reply| &reply.lines) {
        match lines.iter_mut().find(|(known, _)| known == name) {
            Some((_, sum)) => *sum += bytes,
            None => lines.push((name, *bytes)),
        }
    }
    lines.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let mut text = format!("\n{:>12}{}  line of the head\n", "bytes", year.title());
    for (name, bytes) in lines {
        let mean = bytes as f64 / replies.len() as f64;
        let name = if name.is_empty() { "(the empty line)" } else { name };
        let _ = writeln!(text, "{:>12}{}  {name}", format!("{mean:.1}"), year.cells(mean));
    }
    let _ = writeln!(text, "{:>12}{}  any byte more", "1.0", year.cells(1.0));
    text
}

fn assumptions(flags: &BytesFlags, replies: &[&ReplyBytes]) -> String {
    let wires = || replies.iter().map(|reply| Wire::of(reply));
    let acknowledgements =
        wires().map(|wire| wire.acknowledgements).sum::<u64>() as f64 / replies.len() as f64;
    let rate = thousands(flags.requests_per_second);
    let price = match flags.price_per_gb {
        Some(price) => format!(", {price} for each 10^9 bytes that leave"),
        None => "; --price-per-gb PRICE adds what it costs".to_owned(),
    };
    format!(
        "\nAssumed: whole replies (200) to clients that take every coding, {rate} a second all year{price}.\n\
         TLS: 0, for this server has none. TCP/IP: {HEADERS_BYTES} bytes of IPv4 and TCP with timestamps before each\n\
         {SEGMENT_BYTES} bytes of a reply, on connections that are kept; 20 more with IPv6. Not counted: Ethernet's frames,\n\
         what is sent again, opening connections, requests, and the client's acknowledgements (one for two segments:\n\
         {} bytes a reply, the other way).\n",
        thousands(acknowledgements)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(path: &str, head: u64, body: u64) -> ReplyBytes {
        ReplyBytes {
            host: "*".to_owned(),
            path: path.to_owned(),
            coding: "identity",
            lines: vec![("HTTP/1.1".to_owned(), 17), ("X-Own".to_owned(), head - 17)],
            body_bytes: body,
            file_bytes: body,
        }
    }

    #[test]
    fn segments_have_headers_and_are_acknowledged_in_pairs() {
        let wire = |body| Wire::of(&reply("/", 248, body));
        assert_eq!((wire(1_200).tcp_ip, wire(1_201).tcp_ip), (52, 104));
        assert_eq!((wire(1_200).acknowledgements, wire(1_201).acknowledgements), (52, 52));
        assert_eq!((wire(2_649).tcp_ip, wire(2_649).acknowledgements), (156, 104));
        assert_eq!(wire(1_200).sum(), 248 + 1_200 + 52);
    }

    #[test]
    fn a_year_is_told_for_files_lines_and_one_byte() {
        let flags = BytesFlags {
            bytes_report: Some(String::new()),
            price_per_gb: Some(0.5),
            requests_per_second: 1e6,
        };
        let (one, two) = (reply("/a", 248, 1_200), reply("/b", 148, 0));
        let text = written(&flags, &[&one, &two]);
        // 1,500 bytes a million times a second: 47,304,000 GB a year.
        let of_a = text.lines().find(|line| line.ends_with("/a")).unwrap_or_default();
        assert!(of_a.contains("47,304,000") && of_a.contains("23,652,000"), "{text}");
        assert!(text.contains("any byte more") && text.contains("31,536"), "{text}");
        assert!(text.contains("on average") && text.contains("X-Own"), "{text}");
        let plain = written(&BytesFlags { price_per_gb: None, ..flags }, &[&one]);
        assert!(!plain.contains("price a year") && !plain.contains("on average"), "{plain}");
    }
}
