//! Dates of HTTP (IMF-fixdate, RFC 9110 §5.6.7): the engine writes one into each reply, once a second.
//!
//! The time is an argument; no clock is read here.

/// Bytes of a date: always the same number, so that a date can be written over another one.
pub const DATE_BYTES: usize = 29;
/// The last second that four digits can date: 9999-12-31 23:59:59. Later times are written as this one.
pub const UNIX_SECONDS_MAX: u64 = 253_402_300_799;

const WEEKDAYS: [&[u8; 3]; 7] = [b"Thu", b"Fri", b"Sat", b"Sun", b"Mon", b"Tue", b"Wed"];
const MONTHS: [&[u8; 3]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];
const SECONDS_PER_DAY: u64 = 86_400;

/// The date of a time in seconds since 1970-01-01 00:00:00 UTC, as `Sun, 06 Nov 1994 08:49:37 GMT`.
pub fn imf_fixdate(unix_s: u64) -> [u8; DATE_BYTES] {
    let unix_s = unix_s.min(UNIX_SECONDS_MAX);
    let (days, second) = (unix_s / SECONDS_PER_DAY, unix_s % SECONDS_PER_DAY);
    let (year, month, day) = civil(days);
    let mut date = *b"Thu, 01 Jan 1970 00:00:00 GMT";
    // 1970-01-01 was a Thursday.
    date[..3].copy_from_slice(WEEKDAYS[(days % 7) as usize]);
    put_two(&mut date, 5, day);
    date[8..11].copy_from_slice(MONTHS[month as usize - 1]);
    put_two(&mut date, 12, year / 100);
    put_two(&mut date, 14, year % 100);
    put_two(&mut date, 17, second / 3_600);
    put_two(&mut date, 20, second / 60 % 60);
    put_two(&mut date, 23, second % 60);
    date
}

fn put_two(date: &mut [u8; DATE_BYTES], at: usize, value: u64) {
    date[at] = b'0' + (value / 10) as u8;
    date[at + 1] = b'0' + (value % 10) as u8;
}

/// Year, month and day of a day since 1970-01-01, in the Gregorian calendar: `civil_from_days` of Howard
/// Hinnant's "chrono-Compatible Low-Level Date Algorithms". Years start in March, so that the leap day is
/// the last one; 719,468 days lie between 0000-03-01 and 1970-01-01.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn text(unix_s: u64) -> String {
        String::from_utf8(imf_fixdate(unix_s).to_vec()).unwrap()
    }

    #[test]
    fn known_times_have_known_dates() {
        let known = [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_399, "Mon, 28 Feb 2000 23:59:59 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (951_868_800, "Wed, 01 Mar 2000 00:00:00 GMT"),
            (1_000_000_000, "Sun, 09 Sep 2001 01:46:40 GMT"),
            (1_234_567_890, "Fri, 13 Feb 2009 23:31:30 GMT"),
            (1_709_164_800, "Thu, 29 Feb 2024 00:00:00 GMT"),
            (1_735_689_599, "Tue, 31 Dec 2024 23:59:59 GMT"),
            (2_147_483_648, "Tue, 19 Jan 2038 03:14:08 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
            (UNIX_SECONDS_MAX, "Fri, 31 Dec 9999 23:59:59 GMT"),
        ];
        for (unix_s, date) in known {
            assert_eq!(text(unix_s), date);
        }
    }

    #[test]
    fn a_time_beyond_four_digits_is_the_last_one() {
        assert_eq!(imf_fixdate(u64::MAX), imf_fixdate(UNIX_SECONDS_MAX));
    }

    /// Counts the days of 8,030 years one by one, by the rule of leap years alone.
    #[test]
    fn every_day_follows_the_one_before() {
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for days in 0..=UNIX_SECONDS_MAX / SECONDS_PER_DAY {
            assert_eq!(civil(days), (year, month, day));
            day += 1;
            if day > month_days(year, month) {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
        }
        assert_eq!(year, 10_000);
    }

    fn month_days(year: u64, month: u64) -> u64 {
        let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        match month {
            2 if leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        }
    }
}
