//! Numbers and strings of bytes in a packet, one after the other. Used by the messages ([`super::wire`]) and by what they
//! carry ([`super::undo`]); what a packet means is theirs.

#[derive(Default)]
pub(super) struct Writer(pub(super) Vec<u8>);

impl Writer {
    pub(super) fn number(&mut self, number: u64) -> &mut Writer {
        self.0.extend_from_slice(&number.to_ne_bytes());
        self
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) -> &mut Writer {
        self.number(bytes.len() as u64).0.extend_from_slice(bytes);
        self
    }

    pub(super) fn optional(&mut self, bytes: Option<&[u8]>) -> &mut Writer {
        match bytes {
            None => self.number(0),
            Some(bytes) => self.number(1).bytes(bytes),
        }
    }
}

pub(super) struct Reader<'b>(pub(super) &'b [u8]);

impl Reader<'_> {
    pub(super) fn number(&mut self) -> Option<u64> {
        let (eight, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_ne_bytes(*eight))
    }

    pub(super) fn bytes(&mut self) -> Option<Vec<u8>> {
        let len = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(bytes.to_vec())
    }

    pub(super) fn optional(&mut self) -> Option<Option<Vec<u8>>> {
        match self.number()? {
            0 => Some(None),
            _ => self.bytes().map(Some),
        }
    }

    /// Collecting ends at the first item that is not whole, so a false count costs nothing.
    pub(super) fn many<T>(&mut self, item: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        (0..self.number()?).map(|_| item(self)).collect()
    }
}
