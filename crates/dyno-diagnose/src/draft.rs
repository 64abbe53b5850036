//! How a rule answers: found, noted, spoken against, or not looked at.

use dyno_record::finding::{Class, Confidence, Evidence, Finding, Next};

/// What a rule says of its class.
pub(super) enum Outcome {
    /// It is so.
    Found(Draft),
    /// It is so where nothing else is; beside another cause it is only what that looks like.
    Alone(Draft),
    /// It is seen, and no fault by itself.
    Noted(Draft),
    /// The same, and whether it is a fault hangs on what was not seen.
    Partly(Draft, &'static str),
    /// It is not so, by this figure.
    Against(String),
    /// It is not so, by a figure that falls short of a line.
    Near(Short),
    /// What it needs was not seen.
    Unseen(&'static str),
}

/// How far a figure falls short.
pub(super) struct Short {
    /// The part of what it would take.
    pub(super) part: f64,
    /// What it would take, for people.
    pub(super) line: String,
    /// The figure.
    pub(super) by: String,
}

impl Outcome {
    /// Any of these shares would do at its line: the one that comes nearest to it is told.
    pub(super) fn near(shares: &[(f64, f64)], by: impl Into<String>) -> Outcome {
        let part = |(share, line): &(f64, f64)| share / line;
        let nearest = shares.iter().max_by(|a, b| part(a).total_cmp(&part(b)));
        let (share, line) = nearest.copied().unwrap_or((0.0, 1.0));
        Outcome::short(share / line, percent(line), by)
    }

    /// The same where the line is no share.
    pub(super) fn short(part: f64, line: impl Into<String>, by: impl Into<String>) -> Outcome {
        Outcome::Near(Short { part, line: line.into(), by: by.into() })
    }
}

impl Short {
    /// The figure and the line. One that is above its line falls short of something else, which the text says.
    pub(super) fn in_words(&self) -> String {
        if self.part < 1.0 {
            format!("{} (a finding from {} on)", self.by, self.line)
        } else {
            self.by.clone()
        }
    }
}

/// A finding as a rule writes it; the order of findings and what was ruled out are not its business.
pub(super) struct Draft {
    pub(super) finding: Finding,
}

impl Draft {
    pub(super) fn new(class: Class, weight: f64, summary: impl Into<String>) -> Draft {
        Draft {
            finding: Finding {
                class,
                confidence: Confidence::Medium,
                weight: weight.clamp(0.0, 1.0),
                summary: summary.into(),
                evidence: Vec::new(),
                ruled_out: Vec::new(),
                next: Vec::new(),
            },
        }
    }

    pub(super) fn sure(mut self, confidence: Confidence) -> Draft {
        self.finding.confidence = confidence;
        self
    }

    /// A fact with its figure.
    pub(super) fn fact(mut self, text: impl Into<String>, value: f64, unit: &str) -> Draft {
        self.finding.evidence.push(Evidence { text: text.into(), value: Some(value), unit: unit.to_owned() });
        self
    }

    /// A fact without one.
    pub(super) fn sign(mut self, text: impl Into<String>) -> Draft {
        self.finding.evidence.push(Evidence { text: text.into(), value: None, unit: String::new() });
        self
    }

    /// The fact, where there is one.
    pub(super) fn sign_if(self, text: Option<String>) -> Draft {
        match text {
            Some(text) => self.sign(text),
            None => self,
        }
    }

    /// What to do.
    pub(super) fn next(mut self, text: impl Into<String>) -> Draft {
        self.finding.next.push(Next { text: text.into(), rung: None, code: None, specimen: None });
        self
    }

    /// What to do, in place of all that was advised before.
    pub(super) fn instead(mut self, text: impl Into<String>) -> Draft {
        let code = self.finding.next.first_mut().and_then(|next| next.code.take());
        self.finding.next.clear();
        self.next(text).at(code)
    }

    /// The rung that does it.
    pub(super) fn rung(mut self, rung: &str) -> Draft {
        if let Some(next) = self.finding.next.last_mut() {
            next.rung = Some(rung.to_owned());
        }
        self
    }

    /// Where in the code.
    pub(super) fn at(mut self, place: Option<String>) -> Draft {
        if let Some(next) = self.finding.next.first_mut() {
            next.code = place;
        }
        self
    }

    /// The specimen that shows it.
    pub(super) fn specimen(mut self, name: &str) -> Draft {
        if let Some(next) = self.finding.next.first_mut() {
            next.specimen = Some(name.to_owned());
        }
        self
    }
}

/// `3 threads`, `1 thread`.
pub(super) fn counted(count: u64, one: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") }
}

/// A share as percent for a sentence.
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 9.95 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

/// The first places with their shares, for a sentence.
pub(super) fn places(places: &[(String, f64)]) -> Option<String> {
    let named = places.iter().take(3).filter(|(_, share)| *share >= 0.01);
    let text: Vec<String> = named.map(|(place, share)| format!("{place} {}", percent(*share))).collect();
    (!text.is_empty()).then(|| format!("most of it comes from {}", text.join(", ")))
}
