//! Heads that are ready before anybody asks: the date, formatted once a second, and whole heads of plain replies.
//!
//! Replies copy them in front of a body before the reply's length is known; `http1` corrects what was predicted wrongly.

use crate::response::Media;
use dyno_proto::date;
use dyno_proto::http1::encode;

const DATE_BYTES: usize = 29;
const STATUS_OK: &[u8] = b"HTTP/1.1 200 OK\r\nServer: dyno\r\nDate: ";

/// Room for the longest head that is kept ready, 148 bytes: octets, with a length of twenty digits.
const READY_BYTES: usize = 160;

/// Heads of at most this length are copied as if they had it: eight vector stores, the longest copy that compilers
/// make without a call. Text and JSON have shorter heads.
const COPY_BYTES: usize = 128;

/// The date as logs write it, in UTC.
pub(crate) struct LogDates {
    /// `21/Nov/2026:01:37:58 +0000`
    pub(crate) local: [u8; 26],
    /// `2026-11-21T01:37:58+00:00` (RFC 3339).
    pub(crate) iso8601: [u8; 25],
}

impl LogDates {
    /// Of a time in seconds since 1970.
    pub(crate) fn new(unix_s: u64) -> LogDates {
        LogDates::of(&date::imf_fixdate(unix_s))
    }

    /// Of `Sat, 21 Nov 2026 01:37:58 GMT`, whose parts they have in another order.
    fn of(date: &[u8; DATE_BYTES]) -> LogDates {
        let (mut local, mut iso8601) = (*b"dd/mmm/yyyy:hh:mm:ss +0000", *b"yyyy-mm-ddThh:mm:ss+00:00");
        local[0..2].copy_from_slice(&date[5..7]);
        local[3..6].copy_from_slice(&date[8..11]);
        local[7..11].copy_from_slice(&date[12..16]);
        local[12..20].copy_from_slice(&date[17..25]);
        let month = date::month_number(&[date[8], date[9], date[10]]).unwrap_or(0);
        iso8601[0..4].copy_from_slice(&date[12..16]);
        iso8601[5..7].copy_from_slice(&[b'0' + month / 10, b'0' + month % 10]);
        iso8601[8..10].copy_from_slice(&date[5..7]);
        iso8601[11..19].copy_from_slice(&date[17..25]);
        LogDates { local, iso8601 }
    }
}

/// The date, and the heads that are ready.
pub(crate) struct Heads {
    pub(crate) unix_s: u64,
    pub(crate) stale_ns: u64,
    pub(crate) date: [u8; DATE_BYTES],
    pub(crate) log_dates: LogDates,
    pub(crate) json: Ready,
    text: Ready,
    octets: Ready,
}

impl Heads {
    pub(crate) fn new(unix_s: u64) -> Heads {
        let mut heads = Heads {
            unix_s: 0,
            stale_ns: 0,
            date: [b' '; DATE_BYTES],
            log_dates: LogDates::new(unix_s),
            json: Ready::new(Media::Json),
            text: Ready::new(Media::Text),
            octets: Ready::new(Media::Octets),
        };
        heads.stamp(unix_s);
        heads
    }

    #[inline]
    pub(crate) fn ready(&mut self, media: Media) -> Option<&mut Ready> {
        match media {
            Media::Json => Some(&mut self.json),
            Media::Text => Some(&mut self.text),
            Media::Octets => Some(&mut self.octets),
            Media::Named | Media::Absent => None,
        }
    }

    /// Whether a ready head of `head_bytes` that says `body_bytes` is what stands in front of such a body.
    #[inline]
    pub(crate) fn tells(&self, media: Media, head_bytes: usize, body_bytes: usize) -> bool {
        let ready = match media {
            Media::Json => &self.json,
            Media::Text => &self.text,
            Media::Octets => &self.octets,
            Media::Named | Media::Absent => return false,
        };
        ready.count == head_bytes && ready.length == body_bytes
    }

    /// Appends the first lines of any reply.
    pub(crate) fn begin(&self, out: &mut Vec<u8>, status: u16) {
        if status == 200 {
            out.extend_from_slice(STATUS_OK);
        } else {
            encode::reply_start(out, status);
            out.extend_from_slice(b"Server: dyno\r\nDate: ");
        }
        out.extend_from_slice(&self.date);
        out.extend_from_slice(b"\r\n");
    }

    /// Formats the date for this second.
    pub(crate) fn stamp(&mut self, unix_s: u64) {
        self.unix_s = unix_s;
        self.date = date::imf_fixdate(unix_s);
        self.log_dates = LogDates::of(&self.date);
        for ready in [&mut self.json, &mut self.text, &mut self.octets] {
            ready.bytes[STATUS_OK.len()..STATUS_OK.len() + DATE_BYTES].copy_from_slice(&self.date);
        }
    }
}

/// A whole head of a plain 200, for the length that was asked for last: replies of one kind often have one length,
/// and then the head is a single copy.
pub(crate) struct Ready {
    bytes: [u8; READY_BYTES],
    /// Bytes of the head; what stands behind them is never sent.
    count: usize,
    /// Bytes up to the value of Content-Length.
    start: usize,
    pub(crate) length: usize,
}

impl Ready {
    fn new(media: Media) -> Ready {
        let mut ready = Ready { bytes: [b' '; READY_BYTES], count: 0, start: 0, length: 0 };
        for piece in [STATUS_OK, &[b' '; DATE_BYTES], b"\r\nContent-Type: ", media.name().as_bytes()] {
            ready.append(piece);
        }
        ready.append(b"\r\nContent-Length: ");
        ready.start = ready.count;
        ready.append(b"0\r\n\r\n");
        ready
    }

    /// The head as it stands, for a body of `length` bytes.
    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.count]
    }

    #[inline]
    pub(crate) fn with_length(&mut self, length: usize) -> &mut Ready {
        if length != self.length {
            self.set_length(length);
        }
        self
    }

    /// Appends the head. Most are copied with what stands behind them in the array, which is cut off again: a copy
    /// of fixed length is a few stores, one of any other length is a call that has to find out.
    #[inline]
    pub(crate) fn copy_to(&self, out: &mut Vec<u8>) {
        match self.bytes.first_chunk::<COPY_BYTES>() {
            Some(bytes) if self.count <= COPY_BYTES => {
                let end = out.len() + self.count;
                out.extend_from_slice(bytes);
                out.truncate(end);
            }
            _ => out.extend_from_slice(self.as_bytes()),
        }
    }

    #[inline(never)]
    fn set_length(&mut self, length: usize) {
        self.length = length;
        self.count = self.start;
        self.append(encode::Decimal::new(length as u64).as_bytes());
        self.append(b"\r\n\r\n");
    }

    /// The array has room: `READY_BYTES` is more than the longest head there is.
    fn append(&mut self, piece: &[u8]) {
        self.bytes[self.count..self.count + piece.len()].copy_from_slice(piece);
        self.count += piece.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_head_fits_the_array() {
        for media in [Media::Json, Media::Text, Media::Octets] {
            let mut ready = Ready::new(media);
            let longest = String::from_utf8_lossy(ready.with_length(usize::MAX).as_bytes()).into_owned();
            assert!(longest.ends_with(&format!("Content-Length: {}\r\n\r\n", usize::MAX)), "{longest}");
            let shortest = ready.with_length(0).as_bytes();
            assert!(shortest.ends_with(b"Content-Length: 0\r\n\r\n") && shortest.len() < longest.len());
        }
    }

    #[test]
    fn a_head_is_copied_without_what_stands_behind_it() {
        for (media, length) in [(Media::Json, 27), (Media::Json, usize::MAX), (Media::Octets, 1)] {
            let mut ready = Ready::new(media);
            let mut out = b"before".to_vec();
            ready.with_length(length).copy_to(&mut out);
            assert_eq!(out, [b"before", ready.as_bytes()].concat());
        }
    }

    #[test]
    fn the_logs_dates_are_the_http_date_in_another_order() {
        for (unix_s, local, iso8601) in [
            (1_795_225_078, b"21/Nov/2026:01:37:58 +0000", b"2026-11-21T01:37:58+00:00"),
            (0, b"01/Jan/1970:00:00:00 +0000", b"1970-01-01T00:00:00+00:00"),
            (u64::MAX, b"31/Dec/9999:23:59:59 +0000", b"9999-12-31T23:59:59+00:00"),
        ] {
            let dates = LogDates::new(unix_s);
            assert_eq!((&dates.local, &dates.iso8601), (local, iso8601));
        }
    }

    /// Planted faults: a head that tells another length, or of another type, is taken for the right one.
    #[test]
    fn a_head_tells_its_own_type_and_length_only() {
        let mut heads = Heads::new(0);
        for media in [Media::Json, Media::Text, Media::Octets] {
            let head =
                heads.ready(media).map(|ready| ready.with_length(27).as_bytes().len()).unwrap_or_default();
            assert!(head > 0 && heads.tells(media, head, 27), "{}", media.name());
            assert!(
                !heads.tells(media, head, 28)
                    && !heads.tells(media, head + 1, 27)
                    && !heads.tells(media, head - 1, 27)
            );
        }
        for media in [Media::Named, Media::Absent] {
            assert!(heads.ready(media).is_none() && !heads.tells(media, 0, 0));
        }
        let json = heads.json.as_bytes().len();
        let text = heads.text.as_bytes().len();
        assert!(json != text && !heads.tells(Media::Text, json, 27) && !heads.tells(Media::Json, text, 27));
    }

    #[test]
    fn every_ready_head_has_the_date_of_the_second() {
        let mut heads = Heads::new(0);
        for (unix_s, date) in
            [(0, "Thu, 01 Jan 1970 00:00:00 GMT"), (1_700_000_000, "Tue, 14 Nov 2023 22:13:20 GMT")]
        {
            heads.stamp(unix_s);
            assert_eq!((heads.unix_s, heads.date.as_slice()), (unix_s, date.as_bytes()));
            let start = format!("HTTP/1.1 200 OK\r\nServer: dyno\r\nDate: {date}\r\n");
            for media in [Media::Json, Media::Text, Media::Octets] {
                let wanted = format!("{start}Content-Type: {}\r\nContent-Length: 0\r\n\r\n", media.name());
                let head = heads.ready(media).map(|ready| ready.as_bytes().to_vec()).unwrap_or_default();
                assert_eq!(String::from_utf8_lossy(&head), wanted);
            }
            let mut begun = Vec::new();
            heads.begin(&mut begun, 200);
            assert_eq!(String::from_utf8_lossy(&begun), start);
            let mut other = Vec::new();
            heads.begin(&mut other, 404);
            assert_eq!(String::from_utf8_lossy(&other), start.replace("200 OK", "404 Not Found"));
            assert_eq!(heads.log_dates.iso8601, LogDates::new(unix_s).iso8601);
        }
    }

    #[test]
    fn a_length_is_written_anew_where_it_is_another_one() {
        let mut ready = Ready::new(Media::Text);
        for length in [5, 12_345, 5, 5, 0] {
            let head = String::from_utf8_lossy(ready.with_length(length).as_bytes()).into_owned();
            assert!(head.ends_with(&format!("Content-Length: {length}\r\n\r\n")), "{head}");
            assert_eq!(ready.length, length);
        }
    }
}
