//! Dates of HTTP (RFC 9110 §5.6.7): the engine writes one into each reply, once a second, and reads those of conditional
//! requests in all three forms.
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

/// The number of a month, from 1 on, by the three letters that a date has.
pub fn month_number(name: &[u8; 3]) -> Option<u8> {
    (1..).zip(MONTHS).find(|(_, known)| *known == name).map(|(number, _)| number)
}

/// The time of a date in any of the three forms that a recipient must accept, in seconds since 1970. One before 1970 is
/// that moment: nothing that is served is older. The name of the day is read and not believed.
///
/// `now_s` settles the century of a year with two digits: one that seems to lie more than 50 years ahead is past.
pub fn parse(date: &[u8], now_s: u64) -> Option<u64> {
    imf_time(date).or_else(|| rfc850_time(date, now_s)).or_else(|| asctime_time(date))
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`
fn imf_time(date: &[u8]) -> Option<u64> {
    let (weekday, rest) = date.split_at_checked(3)?;
    let [b',', b' ', d1, d2, b' ', m1, m2, m3, b' ', y1, y2, y3, y4, b' ', time @ ..] = rest else {
        return None;
    };
    let time = time.strip_suffix(b" GMT")?;
    is_weekday(weekday).then_some(())?;
    unix_time(digits(&[*y1, *y2, *y3, *y4])?, month(&[*m1, *m2, *m3])?, digits(&[*d1, *d2])?, time)
}

/// `Sunday, 06-Nov-94 08:49:37 GMT`
fn rfc850_time(date: &[u8], now_s: u64) -> Option<u64> {
    const NAMES: [&[u8]; 7] =
        [b"Monday", b"Tuesday", b"Wednesday", b"Thursday", b"Friday", b"Saturday", b"Sunday"];
    let rest = NAMES.iter().find_map(|name| date.strip_prefix(*name))?;
    let [b',', b' ', d1, d2, b'-', m1, m2, m3, b'-', y1, y2, b' ', time @ ..] = rest else { return None };
    let time = time.strip_suffix(b" GMT")?;
    let (this_year, _, _) = civil(now_s.min(UNIX_SECONDS_MAX) / SECONDS_PER_DAY);
    let year = this_year / 100 * 100 + digits(&[*y1, *y2])?;
    let year = if year > this_year + 50 { year - 100 } else { year };
    unix_time(year, month(&[*m1, *m2, *m3])?, digits(&[*d1, *d2])?, time)
}

/// `Sun Nov  6 08:49:37 1994`
fn asctime_time(date: &[u8]) -> Option<u64> {
    let (weekday, rest) = date.split_at_checked(3)?;
    let [b' ', m1, m2, m3, b' ', d1, d2, b' ', rest @ ..] = rest else { return None };
    let (time, year) = rest.split_at_checked(8)?;
    is_weekday(weekday).then_some(())?;
    let day = if *d1 == b' ' { digits(&[*d2])? } else { digits(&[*d1, *d2])? };
    let year = year.strip_prefix(b" ").filter(|year| year.len() == 4)?;
    unix_time(digits(year)?, month(&[*m1, *m2, *m3])?, day, time)
}

fn is_weekday(name: &[u8]) -> bool {
    WEEKDAYS.iter().any(|known| name == *known)
}

fn month(name: &[u8; 3]) -> Option<u64> {
    month_number(name).map(u64::from)
}

fn digits(text: &[u8]) -> Option<u64> {
    text.iter().try_fold(0, |value, byte| byte.is_ascii_digit().then(|| value * 10 + u64::from(byte - b'0')))
}

/// `time` is `08:49:37`; a leap second is allowed and counts as the second before it.
fn unix_time(year: u64, month: u64, day: u64, time: &[u8]) -> Option<u64> {
    let [h1, h2, b':', m1, m2, b':', s1, s2] = time else { return None };
    let (hour, minute) = (digits(&[*h1, *h2])?, digits(&[*m1, *m2])?);
    let second = digits(&[*s1, *s2])?;
    if hour > 23 || minute > 59 || second > 60 || day < 1 || day > days_of(year, month) {
        return None;
    }
    let days = days_since_1970(year, month, day);
    Some(days.map_or(0, |days| days * SECONDS_PER_DAY + hour * 3_600 + minute * 60 + second.min(59)))
}

fn days_of(year: u64, month: u64) -> u64 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// `days_from_civil` of the same paper as [`civil`]; `None` before 1970.
fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    let year = year.checked_sub(u64::from(month <= 2))?;
    let (era, year_of_era) = (year / 400, year % 400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    (era * 146_097 + day_of_era).checked_sub(719_468)
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
            if day > days_of(year, month) {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
        }
        assert_eq!(year, 10_000);
    }

    const NOW_S: u64 = 1_795_000_000;

    #[test]
    fn every_date_that_is_written_is_read_back() {
        let steps = (0..UNIX_SECONDS_MAX).step_by(86_400 * 37 + 12_345);
        for unix_s in steps.chain([0, 951_868_799, 951_868_800, UNIX_SECONDS_MAX]) {
            assert_eq!(parse(&imf_fixdate(unix_s), NOW_S), Some(unix_s), "{}", text(unix_s));
        }
    }

    #[test]
    fn the_three_forms_say_the_same() {
        for date in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "Mon, 06 Nov 1994 08:49:37 GMT",
        ] {
            assert_eq!(parse(date.as_bytes(), NOW_S), Some(784_111_777), "{date}");
        }
    }

    /// NOW_S lies in 2026.
    #[test]
    fn a_year_of_two_digits_is_at_most_fifty_years_ahead() {
        for (year, full) in [("26", "2026"), ("76", "2076"), ("77", "1977"), ("99", "1999"), ("00", "2000")] {
            let (short, long) =
                (format!("Sunday, 06-Nov-{year} 08:49:37 GMT"), format!("Sun, 06 Nov {full} 08:49:37 GMT"));
            assert_eq!(parse(short.as_bytes(), NOW_S), parse(long.as_bytes(), NOW_S), "{short}");
        }
    }

    #[test]
    fn what_is_no_date_is_none() {
        for date in [
            "",
            "0",
            "Sun, 06 Nov 1994 08:49:37",
            "Sun, 06 Nov 1994 08:49:37 UTC",
            "Sun, 06 Nov 1994 08:49:37 +0000",
            "Sun, 6 Nov 1994 08:49:37 GMT",
            "Sun, 06 nov 1994 08:49:37 GMT",
            "Sun, 31 Nov 1994 08:49:37 GMT",
            "Sun, 29 Feb 1900 08:49:37 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:49:37 GMT",
            "Sun, 06 Nov 1994 08:60:37 GMT",
            "Sun, 06 Nov 1994 08:49:61 GMT",
            "Sun, 06 Nov 1994 08:49:37 GMT ",
            "Sun, 06 Nov 19940 08:49:37 GMT",
            "Sol, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06-Nov-94 08:49:37 GMT",
            "Sun Nov 6 08:49:37 1994",
            "Sun Nov  6 08:49:37 94",
            "Sun Nov  6 08:49:37 1994 GMT",
        ] {
            assert_eq!(parse(date.as_bytes(), NOW_S), None, "{date:?}");
        }
    }

    #[test]
    fn a_date_before_the_epoch_is_its_beginning_and_a_leap_second_is_the_one_before() {
        assert_eq!(parse(b"Sun, 06 Nov 1904 08:49:37 GMT", NOW_S), Some(0));
        assert_eq!(parse(b"Sat, 01 Jan 0000 00:00:00 GMT", NOW_S), Some(0));
        assert_eq!(parse(b"Sat, 31 Dec 2016 23:59:60 GMT", NOW_S), Some(1_483_228_799));
    }
}
