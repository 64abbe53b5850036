//! Bytes that replies share instead of copying them: a slice of something that is kept alive by counting.
//!
//! Handlers hand them to `Reply::shared`; the send queue holds them until the peer has them.

use crate::foreign::Foreign;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A part of some bytes with an owner: an `Arc<[u8]>`, a `Vec<u8>`, a file mapping, anything that can show its bytes.
///
/// Copies share the owner. What the owner shows must not change while a copy exists.
///
/// ```
/// # use dyno_engine::*;
/// let page = Shared::from("a page that many replies share");
/// let first = page.part(0..6).map(|part| part.as_bytes().to_vec());
/// assert_eq!(first.as_deref(), Some(&b"a page"[..]));
/// ```
#[derive(Clone)]
pub struct Shared {
    owner: Foreign<Arc<dyn AsRef<[u8]> + Send + Sync>>,
    start: usize,
    end: usize,
}

impl Shared {
    /// All bytes of `owner`.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// assert_eq!(Shared::new(vec![1, 2, 3]).len(), 3);
    /// ```
    pub fn new(owner: impl AsRef<[u8]> + Send + Sync + 'static) -> Shared {
        Shared::from_arc(Arc::new(owner))
    }

    /// The same for an owner that is counted already.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// let bytes = std::sync::Arc::new(vec![1, 2, 3]);
    /// assert_eq!(Shared::from_arc(bytes).as_bytes(), [1, 2, 3]);
    /// ```
    #[must_use]
    pub fn from_arc(owner: Arc<dyn AsRef<[u8]> + Send + Sync>) -> Shared {
        let end = (*owner).as_ref().len();
        Shared { owner: Foreign::new(owner), start: 0, end }
    }

    /// A part of these bytes; `None` when `range` goes beyond them.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// let whole = Shared::from("12345");
    /// assert_eq!(whole.part(1..3).map(|part| part.len()), Some(2));
    /// assert!(whole.part(1..9).is_none());
    /// ```
    #[must_use]
    pub fn part(&self, range: Range<usize>) -> Option<Shared> {
        let length = self.end - self.start;
        if range.start > range.end || range.end > length {
            return None;
        }
        Some(Shared {
            owner: self.owner.clone(),
            start: self.start + range.start,
            end: self.start + range.end,
        })
    }

    /// How many bytes there are.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// assert_eq!(Shared::from("12345").len(), 5);
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Whether there are none.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// assert!(Shared::from("").is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// The bytes.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// assert_eq!(Shared::from("12345").as_bytes(), b"12345");
    /// ```
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &(**self.owner).as_ref()[self.start..self.end]
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Shared({} bytes)", self.len())
    }
}

impl From<Vec<u8>> for Shared {
    fn from(bytes: Vec<u8>) -> Shared {
        Shared::new(bytes)
    }
}

impl From<&'static str> for Shared {
    fn from(text: &'static str) -> Shared {
        Shared::new(text)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn parts_of_parts_are_parts_of_the_whole() {
        let whole = Shared::from(b"0123456789".to_vec());
        let part = whole.part(2..8).unwrap();
        assert_eq!((part.len(), part.as_bytes()), (6, &b"234567"[..]));
        assert_eq!(part.part(1..3).unwrap().as_bytes(), b"34");
        assert!(part.part(0..0).unwrap().is_empty());
        assert!(part.part(0..7).is_none());
        #[allow(clippy::reversed_empty_ranges)]
        let reversed = part.part(3..2);
        assert!(reversed.is_none());
    }
}
