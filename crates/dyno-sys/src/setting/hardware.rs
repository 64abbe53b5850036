//! What network hardware is set to: queues, rings, and when it interrupts (`ethtool -L -G -C`), by ethtool's netlink family.

use super::kind::Kind;
use crate::netlink::attribute::{find, put};
use crate::netlink::ethtool;
use std::io;

/// Which number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Queues that receive only.
    RxQueues,
    /// Queues that send only.
    TxQueues,
    /// Queues that do both.
    Queues,
    /// Descriptors of a receiving queue.
    RxRing,
    /// Descriptors of a sending queue.
    TxRing,
    /// Microseconds until the interrupt after a packet came in.
    RxUsecs,
    /// Microseconds until the interrupt after one went out.
    TxUsecs,
    /// 1: the driver adapts the first of these.
    AdaptiveRx,
    /// 1: it adapts the second.
    AdaptiveTx,
}

/// How a field is asked for and set: the two commands, the attribute, its bytes.
struct Words {
    get: u8,
    set: u8,
    attribute: u16,
    bytes: usize,
}

impl Field {
    /// Every one.
    pub const ALL: [Field; 9] = [
        Field::RxQueues,
        Field::TxQueues,
        Field::Queues,
        Field::RxRing,
        Field::TxRing,
        Field::RxUsecs,
        Field::TxUsecs,
        Field::AdaptiveRx,
        Field::AdaptiveTx,
    ];

    /// As ethtool calls it.
    pub fn name(self) -> &'static str {
        match self {
            Field::RxQueues => "channels rx",
            Field::TxQueues => "channels tx",
            Field::Queues => "channels combined",
            Field::RxRing => "ring rx",
            Field::TxRing => "ring tx",
            Field::RxUsecs => "coalesce rx-usecs",
            Field::TxUsecs => "coalesce tx-usecs",
            Field::AdaptiveRx => "coalesce adaptive-rx",
            Field::AdaptiveTx => "coalesce adaptive-tx",
        }
    }

    /// The one of that name.
    pub fn named(name: &str) -> Option<Field> {
        Field::ALL.into_iter().find(|field| field.name() == name)
    }

    fn words(self) -> Words {
        let (get, attribute, bytes) = match self {
            Field::RxRing => (15, 6, 4),
            Field::TxRing => (15, 9, 4),
            Field::RxQueues => (17, 6, 4),
            Field::TxQueues => (17, 7, 4),
            Field::Queues => (17, 9, 4),
            Field::RxUsecs => (19, 2, 4),
            Field::TxUsecs => (19, 6, 4),
            Field::AdaptiveRx => (19, 11, 1),
            Field::AdaptiveTx => (19, 12, 1),
        };
        Words { get, set: get + 1, attribute, bytes }
    }
}

pub(super) struct Hardware {
    pub(super) device: u32,
    pub(super) field: Field,
}

impl Kind for Hardware {
    fn get(&self) -> io::Result<String> {
        let words = self.field.words();
        let answer = ethtool::answer(self.device, words.get)?;
        let missing = || io::Error::new(io::ErrorKind::NotFound, "the device has no such setting");
        find(&answer, words.attribute).map(|value| value.u32().to_string()).ok_or_else(missing)
    }

    fn put(&self, value: &str) -> io::Result<()> {
        let words = self.field.words();
        let number =
            value.parse::<u32>().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let mut body = Vec::new();
        put(&mut body, words.attribute, &number.to_le_bytes()[..words.bytes]);
        ethtool::tell(self.device, words.set, &body)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::Field;
    use crate::setting::Setting;
    use crate::setting::tests::{device, in_network_with_pair};

    /// Planted fault: another attribute's number for the queues that send; the other ones would be read.
    #[test]
    fn queues_of_a_device_are_set_and_set_back() {
        in_network_with_pair(|| {
            let queues = |field| Setting::Hardware { device: device("vA"), field };
            let (rx, tx) = (queues(Field::RxQueues), queues(Field::TxQueues));
            let before = (rx.read().unwrap(), tx.read().unwrap());
            assert_eq!(before, (b"4".to_vec(), b"4".to_vec()));
            tx.write(b"2").unwrap();
            assert_eq!((rx.read().unwrap(), tx.read().unwrap()), (b"4".to_vec(), b"2".to_vec()));
            tx.put_back(b"4").unwrap();
            assert!(tx.write(b"400").is_err() && tx.write(b"many").is_err());
            assert_eq!((rx.read().unwrap(), tx.read().unwrap()), before);
            assert!(queues(Field::RxUsecs).read().is_err(), "a pair interrupts nobody");
        });
    }

    #[test]
    fn a_field_has_one_name() {
        assert!(Field::ALL.into_iter().all(|field| Field::named(field.name()) == Some(field)));
    }
}
