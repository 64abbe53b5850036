//! The part of a rung's card that puts what experiments foretold beside what was measured.

use dyno_record::climb::{ChangedFunction, Predicted, SettingCausal};

use super::view::View;
use crate::number;
use crate::page::chart::{Ink, Mark, Scale, axis, strip};
use crate::page::html::{Tag, tag};
use crate::page::parts::{effect_words, figure, paragraph, tied};
use crate::page::table::{Edge, number as cell, plain_table, words};
use crate::text::foretold as text;

/// Both figures on one scale, then the functions that the prediction rests on.
pub(super) fn section(view: &View<'_>, foretold: Option<&Predicted>) -> Option<Tag> {
    let foretold = foretold?;
    let part = tag("div").class("foretold").push(tag("h4").text("Predicted and measured: time per request"));
    let part = part.push_all(drawn(foretold));
    let part = part.push_all(
        foretold
            .why_not
            .iter()
            .map(|why| paragraph(tied(&format!("Not predicted: {}.", number::visible(why))))),
    );
    let lack = text::lack(foretold).map(|_| {
        paragraph("Fewer than two looks at both sides told the CPU per request: how much such looks differ is not in the interval of what was predicted, which is too narrow.")
    });
    Some(
        part.push_all(lack)
            .push_all(functions(foretold))
            .push_all(remarks(view, foretold).map(|said| paragraph(tied(&said)))),
    )
}

fn drawn(foretold: &Predicted) -> Option<Tag> {
    let row =
        |name, value: Option<f64>, interval, ink| value.map(|value| (name, Mark { value, interval, ink }));
    let rows = [
        row("predicted", foretold.predicted_percent, foretold.interval_percent, Ink::Hollow),
        row("measured", foretold.measured_percent, foretold.measured_interval_percent, Ink::Solid),
    ];
    let rows: Vec<(&str, Mark)> = rows.into_iter().flatten().collect();
    let ends = rows.iter().flat_map(|(_, mark)| mark.interval.unwrap_or([mark.value; 2]));
    let scale = Scale::around_zero(ends.chain([-1.0, 1.0])).mirrored();
    let line = |(name, mark): &(&str, Mark)| {
        let said = effect_words(Some(mark.value), mark.interval);
        tag("div")
            .class("estimate")
            .push(tag("span").class("name").text(*name))
            .push(strip(&scale, std::slice::from_ref(mark), &format!("{name}: {said}")))
            .push(figure(&said))
    };
    let list = tag("div").class("estimates").push_all(rows.iter().map(line));
    let axis = tag("div").class("estimate").push(tag("span")).push(axis(&scale, "%")).push(tag("span"));
    (!rows.is_empty()).then(|| list.push(axis))
}

fn functions(foretold: &Predicted) -> Option<Tag> {
    let heads = [
        ("function, with the kernel's work for it", Edge::Left),
        ("before, µs/request", Edge::Right),
        ("with it", Edge::Right),
        ("worth", Edge::Left),
    ];
    let row = |one: &ChangedFunction| {
        let [before, after] = text::change(one);
        let name = number::visible(dyno_profile::name::short(&one.name));
        let cells = vec![cell(before, one.before_us), cell(after, one.after_us), words(text::worth(one))];
        (tag("span").text(name), cells)
    };
    let rows: Vec<_> = foretold.functions.iter().map(row).collect();
    (!rows.is_empty()).then(|| plain_table(&heads, rows).class("small"))
}

/// How the experiments went, and what stayed as it was.
fn remarks(view: &View<'_>, foretold: &Predicted) -> Option<String> {
    let made = foretold.profile.and_then(|at| view.climb.causal.get(at)).map(experiments);
    let unchanged = foretold.unchanged.iter().map(|name| number::visible(dyno_profile::name::short(name)));
    let unchanged: Vec<String> = unchanged.collect();
    let stayed = match unchanged.is_empty() {
        true => String::new(),
        false => format!(" Not changed beyond what samples can tell: {}.", unchanged.join(", ")),
    };
    made.map(|made| format!("{made}{stayed}"))
}

fn experiments(made: &SettingCausal) -> String {
    let sites: Vec<String> = made
        .profile
        .sites
        .iter()
        .filter_map(|site| {
            let point = site.greatest()?;
            let saves = effect_words(Some(point.effect_percent), Some(point.interval_percent));
            let name = number::visible(dyno_profile::name::short(&site.name));
            Some(format!("{name} {} % faster saves {saves}", point.speedup_percent))
        })
        .collect();
    let time = number::duration(made.profile.duration_s);
    format!("Experiments of {time} on the setting before: {}.", sites.join("; "))
}
