//! Content codings, and which of them a client wants (Accept-Encoding, RFC 9110 §12.5.3).
//!
//! The engine's content asks for every request that has the field. Members of the list that are malformed say nothing.

use crate::scan::trim_blanks;

/// The codings that content is kept in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Coding {
    /// As it is.
    Identity,
    /// RFC 1952.
    Gzip,
    /// The zlib format, RFC 1950 (RFC 9110 §8.4.1.2).
    Deflate,
    /// Brotli, RFC 7932.
    Br,
    /// Zstandard, RFC 8878 with a window of 8 MiB at most (RFC 9659).
    Zstd,
}

/// Weights in thousandths, as a quality value has three digits.
const WHOLE: u16 = 1_000;

impl Coding {
    /// All of them.
    pub const ALL: [Coding; 5] = [Coding::Identity, Coding::Gzip, Coding::Deflate, Coding::Br, Coding::Zstd];

    /// Its registered name.
    pub fn name(self) -> &'static str {
        match self {
            Coding::Identity => "identity",
            Coding::Gzip => "gzip",
            Coding::Deflate => "deflate",
            Coding::Br => "br",
            Coding::Zstd => "zstd",
        }
    }

    /// The coding of a name in any case; `x-gzip` is gzip (RFC 9110 §8.4.1.3).
    pub fn of_name(name: &[u8]) -> Option<Coding> {
        let name = if name.eq_ignore_ascii_case(b"x-gzip") { b"gzip" } else { name };
        Coding::ALL.into_iter().find(|coding| name.eq_ignore_ascii_case(coding.name().as_bytes()))
    }
}

/// What a client accepts, gathered from its field lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Accepted {
    named: [Option<u16>; Coding::ALL.len()],
    others: Option<u16>,
}

impl Accepted {
    /// Takes in the value of a field line. Of two that name the same coding the later one counts.
    pub fn add(&mut self, value: &[u8]) {
        for member in value.split(|&byte| byte == b',') {
            let Some((name, weight)) = weighted(trim_blanks(member)) else { continue };
            if name == b"*" {
                self.others = Some(weight);
            } else if let Some(coding) = Coding::of_name(name) {
                self.named[coding as usize] = Some(weight);
            }
        }
    }

    /// Which of the offered codings suits best: the one with the highest weight, and of equals the first. `None`: none is
    /// acceptable.
    ///
    /// What is not encoded suits everybody who does not exclude it, but less than anything that was asked for.
    pub fn choose(&self, offers: impl IntoIterator<Item = Coding>) -> Option<Coding> {
        let mut best = None;
        for coding in offers {
            let rank = self.rank(coding);
            if rank > best.map_or(0, |(_, rank)| rank) {
                best = Some((coding, rank));
            }
        }
        best.map(|(coding, _)| coding)
    }

    /// 0: not acceptable; 1: acceptable though nobody asked for it; else one more than the weight.
    fn rank(&self, coding: Coding) -> u16 {
        match (self.named[coding as usize].or(self.others), coding) {
            (Some(0), _) => 0,
            (Some(weight), _) => weight + 1,
            (None, Coding::Identity) => 1,
            (None, _) => 0,
        }
    }
}

/// A member: a name, and its weight.
fn weighted(member: &[u8]) -> Option<(&[u8], u16)> {
    let Some(at) = member.iter().position(|&byte| byte == b';') else {
        return (!member.is_empty()).then_some((member, WHOLE));
    };
    let (name, weight) = (trim_blanks(&member[..at]), trim_blanks(&member[at + 1..]));
    match weight {
        [b'q' | b'Q', b'=', value @ ..] => Some((name, quality(value)?)),
        _ => None,
    }
}

/// A quality value (RFC 9110 §12.4.2) in thousandths: 0 to 1 with at most three digits behind the point; `None` is none.
pub fn quality(value: &[u8]) -> Option<u16> {
    let (whole, fraction) = match value {
        [whole] => (whole, &[][..]),
        [whole, b'.', fraction @ ..] if fraction.len() <= 3 => (whole, fraction),
        _ => return None,
    };
    let mut thousandths = match whole {
        b'0' => 0,
        b'1' => WHOLE,
        _ => return None,
    };
    for (digit, unit) in fraction.iter().zip([100, 10, 1]) {
        thousandths += digit.is_ascii_digit().then(|| u16::from(digit - b'0') * unit)?;
    }
    (thousandths <= WHOLE).then_some(thousandths)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Offered by size, the smallest first.
    const OFFERS: [Coding; 4] = [Coding::Br, Coding::Gzip, Coding::Deflate, Coding::Identity];

    fn chosen(lines: &[&str]) -> Option<Coding> {
        let mut accepted = Accepted::default();
        lines.iter().for_each(|line| accepted.add(line.as_bytes()));
        accepted.choose(OFFERS)
    }

    #[test]
    fn the_table_of_rfc_9110_holds() {
        let (identity, gzip, deflate, br) =
            (Some(Coding::Identity), Some(Coding::Gzip), Some(Coding::Deflate), Some(Coding::Br));
        for (value, expected) in [
            // The five examples of §12.5.3.
            ("compress, gzip", gzip),
            ("", identity),
            ("*", br),
            ("compress;q=0.5, gzip;q=1.0", gzip),
            ("gzip;q=1.0, identity; q=0.5, *;q=0", gzip),
            // Browsers and tools.
            ("gzip, deflate, br, zstd", br),
            ("gzip, deflate", gzip),
            ("deflate, gzip", gzip),
            ("deflate", deflate),
            ("identity", identity),
            // Weights.
            ("br;q=0.5, gzip;q=0.8", gzip),
            ("br;q=0.001, gzip;q=0", br),
            ("br;q=0.5, identity", identity),
            ("br;q=0.5, gzip;q=0.5", br),
            ("br;q=0", identity),
            ("br;q=0.000, *;q=0.1", gzip),
            ("*;q=0.5, identity;q=0.6", identity),
            ("*;q=0.5, deflate;q=1", deflate),
            ("zstd", identity),
            // Nothing is left.
            ("identity;q=0", None),
            ("*;q=0", None),
            ("zstd, identity;q=0", None),
            ("zstd, *;q=0", None),
            ("*;q=0, identity;q=0.1", identity),
            ("gzip, identity;q=0", gzip),
            // Case and blanks.
            ("GZip ;\tQ=0.9 ,\tx", gzip),
            ("x-gzip", gzip),
            (" , ,br,", br),
            // Malformed members say nothing.
            ("br;q=2", identity),
            ("br;q=1.001", identity),
            ("br;q=0.1234", identity),
            ("br;q=.5", identity),
            ("br;q=-1", identity),
            ("br;q=", identity),
            ("br;q", identity),
            ("br;x=1", identity),
            ("br;q=1;q=1", identity),
            ("br q=1", identity),
            ("br;q=2, gzip", gzip),
        ] {
            assert_eq!(chosen(&[value]), expected, "{value:?}");
        }
    }

    #[test]
    fn lines_are_one_list() {
        assert_eq!(chosen(&[]), Some(Coding::Identity));
        assert_eq!(chosen(&["gzip", "br"]), Some(Coding::Br));
        assert_eq!(chosen(&["gzip", "br;q=0.5"]), Some(Coding::Gzip));
        assert_eq!(chosen(&["br", "br;q=0"]), Some(Coding::Identity));
        assert_eq!(chosen(&["identity;q=0", "zstd"]), None);
    }

    #[test]
    fn what_is_not_offered_is_not_chosen() {
        let mut accepted = Accepted::default();
        accepted.add(b"br, gzip;q=0.5");
        assert_eq!(accepted.choose([Coding::Identity]), Some(Coding::Identity));
        assert_eq!(accepted.choose([Coding::Identity, Coding::Gzip]), Some(Coding::Gzip));
        assert_eq!(accepted.choose([]), None);
    }

    #[test]
    fn every_weight_of_three_digits_is_read() {
        for weight in 0..=1_000_u16 {
            let text = format!("{}.{:03}", weight / 1_000, weight % 1_000);
            assert_eq!(quality(text.as_bytes()), Some(weight));
            let short = text.trim_end_matches('0');
            assert_eq!(quality(short.as_bytes()), Some(weight), "{short}");
        }
        assert_eq!((quality(b"1."), quality(b"0."), quality(b"10")), (Some(1_000), Some(0), None));
    }

    /// The weights are drawn and written down in any order; the choice is found again by looking for the greatest.
    #[test]
    fn the_greatest_weight_wins_whatever_else_is_in_the_list() {
        let mut state = 0x5eed_ac01_u64;
        let mut below = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % bound
        };
        for _ in 0..5_000 {
            let weights = OFFERS.map(|_| (below(4) > 0).then(|| below(1_001)));
            let mut members: Vec<String> = vec!["zstd".to_owned(), "x;q=0.7".to_owned()];
            for (coding, weight) in OFFERS.iter().zip(weights) {
                let text = |weight| format!("{};q={}.{:03}", coding.name(), weight / 1_000, weight % 1_000);
                let at = below(members.len() as u64 + 1) as usize;
                members.splice(at..at, weight.map(text));
            }
            let all = OFFERS.iter().zip(weights);
            let wanted = all.filter_map(|(coding, weight)| Some((*coding, weight?))).filter(|one| one.1 > 0);
            let greatest = wanted.clone().map(|one| one.1).max();
            let first = wanted.clone().find(|one| Some(one.1) == greatest).map(|one| one.0);
            let plain = (weights[3] != Some(0)).then_some(Coding::Identity);
            assert_eq!(chosen(&[&members.join(",")]), first.or(plain), "{members:?}");
        }
    }
}
