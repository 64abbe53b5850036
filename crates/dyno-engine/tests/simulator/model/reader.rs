//! A place in the input that moves forward byte by byte: the model's readers of heads, chunks and replies stand on it.
//! It knows where the input ends and where a bound is reached, and no grammar beyond tokens and line ends.

/// Why reading did not come to an end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The input ended first.
    Ended,
    /// No input that goes on from here can be right.
    Wrong(Refusal),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) statuses: Vec<u16>,
    /// The offset behind the byte that decided.
    pub(crate) at: usize,
    pub(crate) why: &'static str,
}

pub(crate) type Read<T> = Result<T, Stop>;

/// No byte may be asked for at this offset or behind it.
#[derive(Debug, Clone, Copy)]
struct Fence {
    at: usize,
    status: u16,
    why: &'static str,
}

/// The kinds of bounds that may hold at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bound {
    Line,
    Head,
    Extension,
    Trailers,
}

pub(crate) struct Reader<'a> {
    input: &'a [u8],
    pub(crate) at: usize,
    fences: Vec<(Bound, Fence)>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(input: &'a [u8], at: usize) -> Self {
        Self { input, at, fences: Vec::new() }
    }

    /// From here on at most `bytes` may be asked for, until the bound is lifted.
    pub(crate) fn bound(&mut self, bound: Bound, bytes: usize, status: u16, why: &'static str) {
        let fence = Fence { at: self.at.saturating_add(bytes), status, why };
        self.fences.push((bound, fence));
    }

    pub(crate) fn lift(&mut self, bound: Bound) {
        self.fences.retain(|(other, _)| *other != bound);
    }

    /// One byte that does not count for this bound.
    pub(crate) fn allow_one_more(&mut self, bound: Bound) {
        for (other, fence) in &mut self.fences {
            if *other == bound {
                fence.at = fence.at.saturating_add(1);
            }
        }
    }

    /// The next byte, left where it is. A bound is reached when a byte behind it is needed, not when it comes.
    pub(crate) fn peek(&self) -> Read<u8> {
        let reached: Vec<&Fence> =
            self.fences.iter().map(|(_, fence)| fence).filter(|fence| self.at >= fence.at).collect();
        if let Some(first) = reached.first() {
            let statuses = reached.iter().map(|fence| fence.status).collect();
            return Err(Stop::Wrong(Refusal { statuses, at: self.at, why: first.why }));
        }
        self.input.get(self.at).copied().ok_or(Stop::Ended)
    }

    pub(crate) fn next(&mut self) -> Read<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Ok(byte)
    }

    /// The last byte taken is one that no valid input has here.
    pub(crate) fn wrong<T>(&self, status: u16, why: &'static str) -> Read<T> {
        self.wrong_in_one_way(&[status], why)
    }

    /// The same where the RFCs leave the status open.
    pub(crate) fn wrong_in_one_way<T>(&self, statuses: &[u16], why: &'static str) -> Read<T> {
        Err(Stop::Wrong(Refusal { statuses: statuses.to_vec(), at: self.at, why }))
    }

    /// Takes this byte or refuses what stands there.
    pub(crate) fn expect(&mut self, byte: u8, why: &'static str) -> Read<()> {
        match self.next()? {
            found if found == byte => Ok(()),
            _ => self.wrong(400, why),
        }
    }

    /// Takes bytes as long as they are of the kind; the one after them must be there and stays.
    pub(crate) fn take_while(&mut self, is_kind: impl Fn(u8) -> bool) -> Read<Vec<u8>> {
        let mut taken = Vec::new();
        while is_kind(self.peek()?) {
            taken.push(self.next()?);
        }
        Ok(taken)
    }

    /// Exactly so many bytes.
    pub(crate) fn take(&mut self, count: u64) -> Read<Vec<u8>> {
        let mut taken = Vec::new();
        while (taken.len() as u64) < count {
            taken.push(self.next()?);
        }
        Ok(taken)
    }

    /// At least one byte of a token (RFC 9110 §5.6.2).
    pub(crate) fn token(&mut self, why: &'static str) -> Read<Vec<u8>> {
        let first = self.next()?;
        if !is_token_byte(first) {
            return self.wrong(400, why);
        }
        let mut token = vec![first];
        token.extend(self.take_while(is_token_byte)?);
        Ok(token)
    }

    /// Carriage return and line feed; neither stands alone (RFC 9112 §2.2).
    pub(crate) fn line_end(&mut self) -> Read<()> {
        self.expect(b'\r', "no carriage return at the end of the line")?;
        self.expect(b'\n', "a carriage return without a line feed")
    }

    /// The two digits after a percent sign (RFC 3986 §2.1).
    pub(crate) fn escape(&mut self) -> Read<[u8; 2]> {
        let mut digits = [0; 2];
        for digit in &mut digits {
            *digit = self.next()?;
            if !digit.is_ascii_hexdigit() {
                return self.wrong(400, "a percent sign without two hexadecimal digits");
            }
        }
        Ok(digits)
    }
}

/// tchar of RFC 9110 §5.6.2.
pub(crate) fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// OWS, BWS and RWS are made of these (RFC 9110 §5.6.3).
pub(crate) fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// Not at all empty, and tokens' bytes only.
pub(crate) fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|byte| is_token_byte(*byte))
}

/// Without the blanks at both ends.
pub(crate) fn trimmed(mut value: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = value
        && is_blank(*first)
    {
        value = rest;
    }
    while let [rest @ .., last] = value
        && is_blank(*last)
    {
        value = rest;
    }
    value
}
