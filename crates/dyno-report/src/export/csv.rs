//! A sheet as comma-separated values (RFC 4180): one figure in a row, numbers as they are.

use dyno_record::figure::{Figure, Sheet, Unit};

use crate::number::visible;

const HEAD: &str = "name,value,low,high,unit,verdict,what,basis";

/// The whole file.
pub(super) fn write(sheet: &Sheet) -> String {
    let rows = sheet.figures.iter().map(row);
    std::iter::once(HEAD.to_owned()).chain(rows).map(|line| line + "\r\n").collect()
}

fn row(figure: &Figure) -> String {
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    let [low, high] = figure.interval.map_or([None, None], |[low, high]| [Some(low), Some(high)]);
    // A share is written in percent, as a change is.
    let unit = if figure.unit == Unit::Share { Unit::Percent } else { figure.unit };
    let unit = serde_json::to_value(unit).ok().and_then(|unit| unit.as_str().map(str::to_owned));
    let text = |text: &str| field(&visible(text));
    let cells = [
        text(&figure.name),
        number(figure.value),
        number(low),
        number(high),
        unit.unwrap_or_default(),
        text(&figure.word),
        text(&figure.what),
        text(&figure.basis),
    ];
    cells.join(",")
}

/// A text as a field. One that begins like a formula gets an apostrophe: a spreadsheet would compute it.
fn field(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@']);
    let text = if formula { format!("'{text}") } else { text.to_owned() };
    match text.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::figure::{Better, Unit};

    #[test]
    fn a_field_with_commas_and_quotes_is_one_field_and_a_formula_is_text() {
        let figure =
            Figure::new("a,\"b\"", "=1+1", (Unit::Us, Better::Lower), Some(1.5)).within(Some([1.0, 2.0]));
        let text = write(&Sheet { figures: vec![figure], ..Sheet::default() });
        assert_eq!(text, format!("{HEAD}\r\n\"a,\"\"b\"\"\",1.5,1,2,us,,'=1+1,\r\n"));
    }
}
