//! The checksum by which a file names the file with its debug information: the CRC-32 of zlib, as GDB's manual has it
//! ("Debugging Information in Separate Files").

/// What each value of a byte does to the sum (the polynomial of IEEE 802.3, its bits reversed).
const STEPS: [u32; 256] = steps();

const fn steps() -> [u32; 256] {
    let mut all = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut step, mut bit) = (byte as u32, 0);
        while bit < 8 {
            step = if step & 1 == 1 { step >> 1 ^ 0xedb8_8320 } else { step >> 1 };
            bit += 1;
        }
        all[byte] = step;
        byte += 1;
    }
    all
}

/// The sum so far, which begins at 0, with more bytes.
pub(super) fn checked(sum: u32, bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!sum, |sum, byte| sum >> 8 ^ STEPS[(sum as u8 ^ byte) as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_nine_digits_is_the_known_one_however_they_are_cut() {
        assert_eq!(checked(0, b"123456789"), 0xcbf4_3926);
        assert_eq!(checked(checked(0, b"1234"), b"56789"), 0xcbf4_3926);
    }
}
