//! The view of an audit: what costs speed, the dearest first, then what could not be looked at, then what is fine.

use dyno_record::audit::{Audit, AuditFinding, Gain, Goal, Level, NotLooked, Risk, Source};

use super::audit_here as here;
use super::block::{Block, Card, Fact, Headline, Item, OnPage, OnTerminal, Section, Shown, View, Voice};
use super::show::{Tone, Verdict};
use super::table::{Cell, Column, Look, Row, Table, words};
use super::words::{self as said, alerts, counted, machine, paragraph, when};

/// Columns of the labels: the longest is "other goals".
const LABEL_COLUMNS: usize = 13;
/// Checks that could not look, of one reason, that are named; the others are counted.
const NAMED_MAX: usize = 12;

/// Commands that a row has room for: one that saves what is there, and one that changes it.
const COMMANDS_MAX: usize = 2;

/// How much of each finding a terminal says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// A row: what, how much, what to do.
    Short,
    /// Everything: why, how it is seen, applied and undone.
    Full,
}

/// All that is said of an audit.
pub(crate) fn view(audit: &Audit, depth: Depth) -> View {
    let (table, cards) = match depth {
        Depth::Short => (OnTerminal::Found, OnTerminal::Nowhere),
        Depth::Full => (OnTerminal::Nowhere, OnTerminal::Found),
    };
    let sections = [
        Some(Section::new(
            "about",
            "",
            (OnPage::Nowhere, OnTerminal::Above),
            vec![Block::Facts(about(audit))],
        )),
        Some(Section::page(
            "answer",
            "",
            OnPage::Head,
            vec![Block::Headline(headline(audit)), Block::Facts(about(audit))],
        )),
        alerts("warnings", OnTerminal::Last, said::warnings(&audit.warnings)),
        Some(Section::new("overview", "Overview", (OnPage::Body, table), overview(audit))),
        (!audit.findings.is_empty() || depth == Depth::Full)
            .then(|| Section::new("findings", "Findings", (OnPage::Body, cards), vec![all_cards(audit)])),
        Some(Section::new(
            "unseen",
            "Not looked at",
            (OnPage::Body, OnTerminal::Below),
            vec![Block::Facts(unseen(audit))],
        )),
        Some(Section::new(
            "rest",
            "The rest",
            (OnPage::Nowhere, OnTerminal::Below),
            vec![Block::Facts(rest(audit, depth))],
        )),
        audit.measured.as_ref().map(|measured| {
            let facts = vec![Block::Facts(here::measured(measured))];
            Section::new("measured", "Measured here", (OnPage::Body, OnTerminal::Below), facts)
        }),
        Some(Section::page("fine", "Nothing to change", OnPage::Body, vec![fine(audit)])),
    ];
    View {
        title: format!("Audit of {}", machine(&audit.machine)),
        kicker: format!(
            "dyno audit · {} · {}",
            machine(&audit.machine),
            when(audit.started_unix_s, audit.took_s)
        ),
        sections: sections.into_iter().flatten().collect(),
        foot: format!("dyno {}", audit.version),
        label_columns: LABEL_COLUMNS,
    }
}

fn headline(audit: &Audit) -> Headline {
    if audit.saw_too_little() {
        let unit = format!("findings for {}, and that says little", audit.goal.name());
        let big = audit.findings.len().to_string();
        return Headline { big, unit, from: too_little(audit), ..Headline::default() };
    }
    let worst =
        audit.findings.first().map_or_else(String::new, |first| format!("the dearest: {}", first.title));
    Headline {
        big: audit.findings.len().to_string(),
        unit: format!(
            "{} for {}",
            if audit.findings.len() == 1 { "finding" } else { "findings" },
            audit.goal.name()
        ),
        from: worst,
        ..Headline::default()
    }
}

fn about(audit: &Audit) -> Vec<Fact> {
    let server = audit.server.clone().unwrap_or_else(|| "none named; --pid PID looks at one, too".to_owned());
    let user = if audit.machine.root { "read as root" } else { "not read as root: some facts are hidden" };
    vec![
        Fact::new("host", format!("{} · {user} · {:.1} s", machine(&audit.machine), audit.took_s)),
        Fact::new("server", server),
        Fact::new("goal", goal(audit.goal)),
    ]
}

fn goal(goal: Goal) -> &'static str {
    match goal {
        Goal::Throughput => "throughput: requests per second under load",
        Goal::Latency => "latency: the time of one answer when there is little load",
        Goal::Connections => "connections: how many can be open",
        Goal::Memory => "memory: how little of it is used",
    }
}

const COLUMNS: [Column; 5] = [
    Column::words("check", 20),
    Column::words("costs", 16).falls(1).under("costs {}"),
    Column::words("source", 20).falls(3),
    Column::words("risk of mending", 18).falls(2).under("risk: {}"),
    Column::words("level", 8),
];

fn overview(audit: &Audit) -> Vec<Block> {
    if audit.findings.is_empty() {
        return vec![paragraph(nothing_found(audit))];
    }
    let doubt = audit.saw_too_little().then(|| paragraph(too_little(audit)));
    let table = Block::Table(Table::new("findings", &COLUMNS, audit.findings.iter().map(row).collect()));
    doubt.into_iter().chain([table]).collect()
}

/// How much was looked at.
fn nothing_found(audit: &Audit) -> String {
    let (all, unseen) = (audit.checks(), audit.not_looked_at.len());
    match audit.saw_too_little() {
        true => too_little(audit),
        false => format!("nothing found for {} by {} of {all} checks", audit.goal.name(), all - unseen),
    }
}

/// The headline of an audit that could not look.
pub(crate) fn too_little(audit: &Audit) -> String {
    let (all, unseen) = (audit.checks(), audit.not_looked_at.len());
    format!("too little could be seen to say that nothing is wrong: {unseen} of {all} checks could not look")
}

fn row(finding: &AuditFinding) -> Row {
    let level = Cell {
        words: finding.level.name().into(),
        look: Look::Toned(tone(finding.level)),
        ..Cell::default()
    };
    let cells = vec![
        words(&finding.id),
        words(costs(finding)),
        words(finding.gain.source.name()),
        words(finding.risk.name()),
        level,
    ];
    let commands = match finding.apply.len() {
        0..=COMMANDS_MAX => finding.apply.join("; "),
        count => format!("{count} commands, which --full has"),
    };
    let first = (!commands.is_empty()).then(|| format!("try: {commands}"));
    // What keeps a change from being made here comes before the commands for it.
    let by_hand = (!finding.by_hand.is_empty()).then(|| format!("by hand: {}", finding.by_hand));
    let notes = [
        Some(format!("{}.", finding.title)),
        Some(format!("found: {}", finding.found)),
        Some(format!("better: {}", finding.recommended)),
        by_hand,
        first,
    ];
    Row { cells, sentences: notes.into_iter().flatten().collect(), ..Row::default() }
}

fn tone(level: Level) -> Tone {
    match level {
        Level::High => Tone::Bad,
        Level::Medium => Tone::Doubt,
        Level::Low => Tone::Faint,
    }
}

/// What it costs, in a few characters.
fn costs(finding: &AuditFinding) -> String {
    match finding.gain.percent {
        Some([least, most]) if finding.gain.source == Source::MeasuredHere && most < 10.0 => {
            format!("{least:.1} to {most:.1} %")
        }
        Some([least, most]) if least == most => format!("{most:.0} %"),
        Some([least, most]) => format!("{least:.0} to {most:.0} %"),
        None if finding.level == Level::High => "losses".to_owned(),
        None => "not known".to_owned(),
    }
}

fn all_cards(audit: &Audit) -> Block {
    match audit.findings.is_empty() {
        true => paragraph(nothing_found(audit)),
        false => Block::Cards(audit.findings.iter().enumerate().map(|(at, one)| card(at, one)).collect()),
    }
}

fn card(at: usize, finding: &AuditFinding) -> Card {
    let object = if finding.object.is_empty() { String::new() } else { format!(" · {}", finding.object) };
    let command = |lead: &'static str, all: &[String]| -> Vec<Item> {
        all.iter().map(|command| Item::new(lead, command)).collect()
    };
    let points = [
        vec![
            Item::new("found", &finding.found),
            Item::new("better", &finding.recommended),
            Item::new("gain", of_gain(&finding.gain)),
        ],
        prices(finding),
        Some(&finding.by_hand)
            .filter(|why| !why.is_empty())
            .map(|why| Item::new("by hand", why))
            .into_iter()
            .collect(),
        command("see", &finding.see),
        command("do", &finding.apply),
        command("undo", &finding.revert),
    ];
    Card {
        anchor: format!("finding-{}", at + 1),
        name: finding.id.clone(),
        aside: format!("costs {}{object}", costs(finding)),
        verdict: Some(Verdict { word: finding.level.name(), tone: tone(finding.level) }),
        shown: Shown::Open,
        blocks: vec![
            said::said(Voice::Plain, "", format!("{}. {}", finding.title, finding.why)),
            Block::List("", points.concat()),
        ],
    }
}

fn of_gain(gain: &Gain) -> String {
    match (gain.source, gain.percent) {
        (Source::NoneFound, _) | (_, None) => format!("no figure is known: {}", gain.of),
        (source, Some([least, most])) => {
            let [least, most] = [least, most].map(|end| format!("{end:.0}"));
            let both = if least == most { least } else { format!("{least} to {most}") };
            format!("{both} % ({}): {}", source.name(), gain.of)
        }
    }
}

/// The four prices; where there is none that is said.
fn prices(finding: &AuditFinding) -> Vec<Item> {
    let prices = &finding.prices;
    let all = [
        ("security", &prices.security),
        ("durability", &prices.durability),
        ("CPU when idle", &prices.cpu),
        ("operability", &prices.operability),
    ];
    let said: Vec<Item> = all
        .iter()
        .filter(|(_, words)| !words.is_empty())
        .map(|(name, words)| Item::new("risk", format!("{name}: {words}")))
        .collect();
    match said.is_empty() && finding.risk == Risk::None {
        true => vec![Item::new("risk", "none known")],
        false => said,
    }
}

/// Checks that could not look, together where the same would help.
fn unseen(audit: &Audit) -> Vec<Fact> {
    let mut reasons: Vec<(&str, Vec<&NotLooked>)> = Vec::new();
    for one in &audit.not_looked_at {
        match reasons.iter_mut().find(|(needs, _)| *needs == one.needs) {
            Some((_, all)) => all.push(one),
            None => reasons.push((&one.needs, vec![one])),
        }
    }
    let facts: Vec<Fact> = reasons.iter().map(|(needs, all)| unseen_for(needs, all)).collect();
    match facts.is_empty() {
        true => vec![Fact::new("not seen", "every check could look")],
        false => facts,
    }
}

fn unseen_for(needs: &str, all: &[&NotLooked]) -> Fact {
    let ids: Vec<&str> = all.iter().take(NAMED_MAX).map(|one| one.id.as_str()).collect();
    let more =
        if all.len() > NAMED_MAX { format!(" and {} more", all.len() - NAMED_MAX) } else { String::new() };
    let mut whys: Vec<&str> = Vec::new();
    for one in all {
        if !whys.contains(&one.why.as_str()) {
            whys.push(&one.why);
        }
    }
    let needs = if needs.is_empty() { String::new() } else { format!("; it needs {needs}") };
    Fact::new("not seen", format!("{}{more}: {}{needs}", ids.join(", "), whys.join("; ")))
}

fn rest(audit: &Audit, depth: Depth) -> Vec<Fact> {
    let others: Vec<String> = audit
        .other_goals
        .iter()
        .map(|one| {
            format!(
                "{} ({})",
                one.id,
                one.goals.iter().map(|goal| goal.name()).collect::<Vec<_>>().join(", ")
            )
        })
        .collect();
    let not_here: Vec<&str> = audit.not_here.iter().map(|one| one.id.as_str()).collect();
    let counted = format!("{} found nothing to change", counted(audit.fine.len(), "check"));
    let more = match depth {
        Depth::Short => {
            "dyno audit --full says why, and how each is seen, applied and undone; dyno audit facts has every raw value"
        }
        Depth::Full => "",
    };
    vec![
        Fact::new("other goals", others.join(", ")),
        Fact::new("not here", not_here.join(", ")),
        Fact::new("fine", counted),
        Fact::new("more", more),
    ]
}

const FINE: [Column; 2] = [Column::words("check", 20), Column::words("found", 200)];

fn fine(audit: &Audit) -> Block {
    let fine = audit.fine.iter().map(|one| -> Row { vec![words(&one.id), words(&one.found)].into() });
    let not_here = audit
        .not_here
        .iter()
        .map(|one| -> Row { vec![words(&one.id), words(format!("not here: {}", one.what))].into() });
    let others = audit.other_goals.iter().map(|one| -> Row {
        let goals = one.goals.iter().map(|goal| goal.name()).collect::<Vec<_>>().join(", ");
        vec![words(&one.id), words(format!("{} (a finding for {goals})", one.found))].into()
    });
    Block::Table(Table::new("checks without a finding", &FINE, others.chain(fine).chain(not_here).collect()))
}
