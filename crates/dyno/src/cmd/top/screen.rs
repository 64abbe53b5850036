//! How a look is drawn: a screen on a terminal, a line elsewhere.
//!
//! Nothing is read from the terminal and none of its modes is changed: it shows another screen for a while, and
//! [`Screen`]'s end, however it comes, shows the old one again.

use super::rates::{Rates, together};
use super::scrape::Look;
use crate::out;
use dyno_lab::Failure;
use dyno_report::number::{NONE, bytes, count, duration};
use dyno_sys::tty::Size;

/// The alternate screen, without a cursor (xterm, "Private modes" 1049 and 25).
const BEGIN: &str = "\x1b[?1049h\x1b[?25l";
const END: &str = "\x1b[?25h\x1b[?1049l";
/// To the first line; the rest of a line is cleared behind it, the rest of the screen at the end.
const HOME: &str = "\x1b[H";
const CLEAR_LINE: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";

/// A terminal without a size is taken for the smallest usual one.
const USUAL: Size = Size { columns: 80, rows: 24 };

/// A terminal that shows our screen.
pub(super) struct Screen;

impl Screen {
    pub(super) fn begin() -> Result<Screen, Failure> {
        out::print(BEGIN)?;
        Ok(Screen)
    }

    /// Shows these lines, as far as they fit.
    pub(super) fn show(&self, lines: &[String]) -> Result<(), Failure> {
        let size = dyno_sys::tty::size(std::io::stdout()).unwrap_or(USUAL);
        out::print(&frame(lines, size))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that takes nothing any more shows nothing.
        let _ = out::print(END);
    }
}

fn frame(lines: &[String], size: Size) -> String {
    let rows = if size.rows == 0 { USUAL.rows } else { size.rows };
    let fitting: Vec<String> = lines
        .iter()
        .take(rows)
        .map(|line| line.chars().take(size.columns).collect::<String>() + CLEAR_LINE)
        .collect();
    // No line end behind the last: it would scroll.
    format!("{HOME}{}{CLEAR_BELOW}", fitting.join("\r\n"))
}

/// The screen of a look.
pub(super) fn lines(title: &str, look: &Look, workers: &[Rates]) -> Vec<String> {
    let all = together(workers);
    let [ok, moved, refused, failed] = all.replies.map(count);
    let noun = if workers.len() == 1 { "worker" } else { "workers" };
    let mut lines = vec![
        format!("dyno top · {title} · up {} · {} {noun}", duration(look.uptime_s), workers.len()),
        String::new(),
        format!(
            "requests/s   {:>9}   2xx {ok}  3xx {moved}  4xx {refused}  5xx {failed}",
            count(all.requests())
        ),
        format!("connections  {:>9}   +{}/s  −{}/s", count(all.open), count(all.accepted), count(all.closed)),
        format!(
            "bytes/s      {:>9}   in {}   held {}",
            size(all.sent),
            size(all.received),
            size(all.buffered)
        ),
        format!("CPU/request  {:>9}   {}", total_us(&all), parts_us(&all)),
    ];
    if look.restarts > 0.0 || look.lines_lost > 0.0 {
        lines.push(format!(
            "worker restarts {}   log lines lost {}",
            count(look.restarts),
            count(look.lines_lost)
        ));
    }
    lines.push(String::new());
    lines.push(format!(
        "{:>6} {:>10} {:>8} {:>9} {:>9} {:>6} {:>7} {:>11}",
        "worker", "requests/s", "open", "sent/s", "recv/s", "user", "system", "CPU/request"
    ));
    lines.extend(workers.iter().enumerate().map(|(number, rates)| row(number, rates)));
    lines
}

fn row(number: usize, rates: &Rates) -> String {
    format!(
        "{number:>6} {:>10} {:>8} {:>9} {:>9} {:>4.0} % {:>5.0} % {:>11}",
        count(rates.requests()),
        count(rates.open),
        size(rates.sent),
        size(rates.received),
        rates.user * 100.0,
        rates.system * 100.0,
        total_us(rates)
    )
}

/// A look in one line.
pub(super) fn line(workers: &[Rates]) -> String {
    let all = together(workers);
    let errors = all.replies[2] + all.replies[3];
    format!(
        "requests/s {}  4xx+5xx/s {}  open {}  sent {}/s  received {}/s  CPU/request {} ({})\n",
        count(all.requests()),
        count(errors),
        count(all.open),
        size(all.sent),
        size(all.received),
        total_us(&all),
        parts_us(&all)
    )
}

fn size(value: f64) -> String {
    bytes(value.max(0.0) as u64)
}

fn total_us(rates: &Rates) -> String {
    rates.cpu_us().map_or_else(|| NONE.to_owned(), |(user, system)| format!("{:.1} µs", user + system))
}

fn parts_us(rates: &Rates) -> String {
    match rates.cpu_us() {
        Some((user, system)) => format!("user {user:.1}  system {system:.1}"),
        None => "no requests".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates() -> Rates {
        Rates {
            replies: [12_000.0, 0.0, 345.0, 0.0],
            accepted: 2.0,
            closed: 1.0,
            received: 1_234_567.0,
            sent: 4_000_000.0,
            user: 0.05,
            system: 0.1,
            open: 64.0,
            buffered: 0.0,
        }
    }

    #[test]
    fn a_screen_tells_all_and_each_worker() {
        let look = Look { uptime_s: 70.0, ..Look::default() };
        let lines = lines("127.0.0.1:9100", &look, &[rates(), rates()]);
        assert_eq!(lines[0], "dyno top · 127.0.0.1:9100 · up 1 min 10 s · 2 workers");
        assert_eq!(lines[2], "requests/s      24,690   2xx 24,000  3xx 0  4xx 690  5xx 0");
        assert_eq!(lines[3], "connections        128   +4/s  −2/s");
        assert_eq!(lines[4], "bytes/s         8.0 MB   in 2.5 MB   held 0 B");
        assert_eq!(lines[5], "CPU/request    12.2 µs   user 4.1  system 8.1");
        assert_eq!(lines[8], "     0     12,345       64    4.0 MB    1.2 MB    5 %    10 %     12.2 µs");
        assert_eq!(lines.len(), 10);
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{lines:#?}");
    }

    #[test]
    fn what_was_lost_is_told_when_there_is_any() {
        let look = Look { restarts: 2.0, ..Look::default() };
        assert_eq!(lines("x", &look, &[])[6], "worker restarts 2   log lines lost 0");
    }

    #[test]
    fn a_frame_is_never_larger_than_its_terminal() {
        let lines: Vec<String> = (0..100).map(|_| "µ".repeat(200)).collect();
        for (columns, rows) in [(80, 24), (20, 3), (1, 1), (300, 200)] {
            let frame = frame(&lines, Size { columns, rows });
            let shown: Vec<&str> = frame.split("\r\n").collect();
            assert_eq!(shown.len(), rows.min(100));
            assert!(shown.iter().all(|line| line.matches('µ').count() <= columns));
        }
        assert_eq!(frame(&lines, Size { columns: 80, rows: 0 }).split("\r\n").count(), 24);
    }

    #[test]
    fn a_line_has_the_same_figures() {
        assert_eq!(
            line(&[rates()]),
            "requests/s 12,345  4xx+5xx/s 345  open 64  sent 4.0 MB/s  received 1.2 MB/s  CPU/request 12.2 µs (user 4.1  system 8.1)\n"
        );
        assert!(line(&[]).contains("CPU/request – (no requests)"));
    }
}
