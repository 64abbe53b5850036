//! What an audit measured itself, in lines: the figure with its interval, or why there is none.

use dyno_record::fact::Fact as Read;
use dyno_record::facts::{Figure, Filters, Locality, Measured, Packets, Watched};

use super::block::Fact;

/// One line for each.
pub(super) fn measured(here: &Measured) -> Vec<Fact> {
    let lines = [
        (
            "a call",
            line(&here.call_ns, |figure| format!("{} for a system call that does nothing", ns(figure))),
        ),
        ("filters", line(&here.filters, filters)),
        (
            "a request",
            line(&here.request_us, |figure| format!("{} over loopback, both ends on one CPU", us(figure))),
        ),
        ("a tap", line(&here.tap, packets)),
        ("rules", line(&here.rules, packets)),
        ("locality", line(&here.locality, locality)),
        ("a reply", line(&here.server, watched)),
    ];
    let took = Fact::new("measured", format!("in {:.1} s, here; 95 % intervals in brackets", here.took_s));
    std::iter::once(took).chain(lines.map(|(label, text)| Fact::new(label, text))).collect()
}

fn line<T>(read: &Read<T>, words: impl Fn(&T) -> String) -> String {
    match read {
        Read::Value(value) => words(value),
        Read::Absent(what) => format!("not measured: not here: {what}"),
        Read::Unread(why) => {
            let needs =
                if why.needs.is_empty() { String::new() } else { format!("; it needs {}", why.needs) };
            format!("not measured: {}{needs}", why.why)
        }
    }
}

fn ns(figure: &Figure) -> String {
    let [least, most] = figure.interval;
    format!("{:.0} ns [{least:.0}, {most:.0}]", figure.value)
}

fn us(figure: &Figure) -> String {
    let [least, most] = figure.interval;
    format!("{:.2} µs [{least:.2}, {most:.2}]", figure.value)
}

fn filters(filters: &Filters) -> String {
    format!(
        "{} longer behind copies of {} of thread {} ({} instructions): {}",
        ns(&filters.extra_ns),
        if filters.count == 1 { "the filter".to_owned() } else { format!("the {} filters", filters.count) },
        filters.tid,
        filters.instructions,
        ns(&filters.call_ns)
    )
}

fn packets(packets: &Packets) -> String {
    let [least, most] = packets.percent.interval;
    format!(
        "{} a packet longer with {}: {:.1} % [{least:.1}, {most:.1}] of a small request over a cable of our own ({} without)",
        ns(&packets.packet_ns),
        packets.what,
        packets.percent.value,
        us(&packets.request_us)
    )
}

fn locality(seen: &Locality) -> String {
    let [least, most] = seen.elsewhere_percent.interval;
    format!(
        "{:.0} % [{least:.0}, {most:.0}] of {:.0} receive interrupts a second on CPUs where the server did not run",
        seen.elsewhere_percent.value, seen.per_second
    )
}

fn watched(seen: &Watched) -> String {
    format!(
        "{:.1} system calls, of {} replies in {:.2} s",
        seen.calls_per_reply(),
        seen.replies,
        seen.seconds
    )
}
