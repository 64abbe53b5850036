//! Attributes of netlink messages (`struct nlattr`): a length, a kind, bytes, and padding to four.
//!
//! Parsers of this folder walk them; what does not fit its length ends the walk.

/// Bytes of an attribute's head.
const HEAD_BYTES: usize = 4;
/// The kind without the flags "nested" and "big endian" (`NLA_TYPE_MASK`).
const KIND_MASK: u16 = 0x3fff;

/// One attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute<'b> {
    /// Its kind, of a list that each message has.
    pub kind: u16,
    /// What it holds, attributes perhaps.
    pub bytes: &'b [u8],
}

impl<'b> Attribute<'b> {
    /// A number in the machine's order; shorter ones are widened.
    pub fn number(&self) -> u64 {
        let mut bytes = [0; 8];
        let len = self.bytes.len().min(8);
        bytes[..len].copy_from_slice(&self.bytes[..len]);
        u64::from_le_bytes(bytes)
    }

    /// A number of four bytes in the machine's order.
    pub fn u32(&self) -> u32 {
        self.number() as u32
    }

    /// A number in the network's order, as packet filters have them.
    pub fn be(&self) -> u64 {
        self.bytes.iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte))
    }

    /// A text, without the zero byte at its end; what is no UTF-8 is replaced.
    pub fn text(&self) -> String {
        let end = self.bytes.iter().position(|byte| *byte == 0).unwrap_or(self.bytes.len());
        String::from_utf8_lossy(&self.bytes[..end]).into_owned()
    }

    /// The attributes inside.
    pub fn inside(&self) -> impl Iterator<Item = Attribute<'b>> + use<'b> {
        attributes(self.bytes)
    }
}

/// The attributes that lie one after the other in these bytes.
pub fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = Attribute<'_>> {
    std::iter::from_fn(move || {
        let head = bytes.get(..HEAD_BYTES)?;
        let len = usize::from(u16::from_le_bytes([head[0], head[1]]));
        let kind = u16::from_le_bytes([head[2], head[3]]) & KIND_MASK;
        let content = bytes.get(HEAD_BYTES..len)?;
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some(Attribute { kind, bytes: content })
    })
}

/// The first attribute of a kind.
pub fn find(bytes: &[u8], kind: u16) -> Option<Attribute<'_>> {
    attributes(bytes).find(|attribute| attribute.kind == kind)
}

/// Writes an attribute.
pub fn put(out: &mut Vec<u8>, kind: u16, content: &[u8]) {
    let len = u16::try_from(HEAD_BYTES + content.len()).expect("our requests are short");
    out.extend(len.to_le_bytes());
    out.extend(kind.to_le_bytes());
    out.extend(content);
    out.resize(out.len().next_multiple_of(4), 0);
}

/// A number of four bytes at this place of a structure; 0 where it is too short.
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]))
}

/// A number of eight bytes at this place of a structure.
pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> Vec<u8> {
        let mut bytes = Vec::new();
        put(&mut bytes, 3, b"eth0\0");
        put(&mut bytes, 4 | 0x8000, &1_500u32.to_le_bytes());
        bytes
    }

    #[test]
    fn attributes_are_read_as_they_were_written() {
        let bytes = two();
        let read: Vec<Attribute<'_>> = attributes(&bytes).collect();
        assert_eq!((read[0].text().as_str(), read[1].kind, read[1].u32()), ("eth0", 4, 1_500));
        assert_eq!(find(&bytes, 3).map(|one| one.bytes.len()), Some(5));
        assert_eq!(Attribute { kind: 1, bytes: &[0, 0, 31, 144] }.be(), 8_080);
    }

    #[test]
    fn a_message_cut_anywhere_gives_whole_attributes_or_none() {
        let bytes = two();
        for end in 0..bytes.len() {
            for attribute in attributes(&bytes[..end]) {
                assert!(attribute.bytes == b"eth0\0" || attribute.u32() == 1_500, "cut at {end}");
            }
        }
        // A length below the head's would never end.
        assert_eq!(attributes(&[0, 0, 1, 0, 0, 0, 1, 0]).count(), 0);
        assert_eq!((u32_at(&[1, 2], 0), u64_at(&[1, 0, 0, 0], 0)), (0, 1));
    }
}
