//! Reading conditions: a text to its parts, with the place of whatever is wrong.

use super::{Condition, ConditionError, End, Op, Place};

/// Longer texts are a mistake, not a gate.
const CHARS_MAX: usize = 4_096;

/// Reads conditions, at least one.
///
/// # Errors
/// Says what is wrong, and where.
pub fn read(text: &str) -> Result<Vec<Condition>, ConditionError> {
    let mut reader = Reader { chars: text.chars().collect(), at: 0 };
    if reader.chars.len() > CHARS_MAX {
        let at = Place { from: 0, to: 1 };
        return Err(ConditionError { what: "the text is too long".into(), hint: EXAMPLE.into(), at });
    }
    let mut all = vec![reader.condition()?];
    while reader.goes_on()? {
        all.push(reader.condition()?);
    }
    Ok(all)
}

const EXAMPLE: &str = "write it as total>=1.5x or p99<=5ms";

struct Reader {
    chars: Vec<char>,
    at: usize,
}

impl Reader {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn blanks(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    fn take(&mut self, wanted: impl Fn(char) -> bool) -> (String, Place) {
        let from = self.at;
        while self.peek().is_some_and(&wanted) {
            self.at += 1;
        }
        (self.chars[from..self.at].iter().collect(), Place { from, to: self.at })
    }

    fn eat(&mut self, c: char) -> bool {
        let there = self.peek() == Some(c);
        self.at += usize::from(there);
        there
    }

    fn wrong<T>(&self, what: &str, hint: &str, from: usize) -> Result<T, ConditionError> {
        let at = Place { from, to: self.at.max(from + 1) };
        Err(ConditionError { what: what.to_owned(), hint: hint.to_owned(), at })
    }

    /// Whether another condition follows.
    fn goes_on(&mut self) -> Result<bool, ConditionError> {
        self.blanks();
        let from = self.at;
        if self.peek().is_none() {
            return Ok(false);
        }
        if self.eat(',') {
            return Ok(true);
        }
        let (word, _) = self.take(|c| c.is_alphabetic());
        match word.as_str() {
            "and" => Ok(true),
            "or" => {
                self.wrong("conditions must all hold: there is no \"or\"", "join them with a comma", from)
            }
            _ => {
                self.take(|c| c != ',' && !c.is_whitespace());
                self.wrong("a condition ends before this", "join conditions with a comma", from)
            }
        }
    }

    fn condition(&mut self) -> Result<Condition, ConditionError> {
        self.blanks();
        let from = self.at;
        let (end, name, name_at) = self.figure()?;
        let op = self.op()?;
        self.blanks();
        let (limit, number_at) = self.number()?;
        self.blanks();
        let (unit, unit_at) = self.unit();
        let to = if unit.is_empty() { number_at.to } else { self.at };
        let text = self.chars[from..to].iter().collect();
        let unit_at = if unit.is_empty() { number_at } else { unit_at };
        Ok(Condition { text, name, end, op, limit, unit, name_at, unit_at })
    }

    fn figure(&mut self) -> Result<(End, String, Place), ConditionError> {
        let (name, at) = self.name()?;
        let end = match name.as_str() {
            "low" => End::Low,
            "high" => End::High,
            _ => return Ok((End::Estimate, name, at)),
        };
        if !self.eat('(') {
            return self.wrong(
                &format!("\"{name}\" is an end of a figure's interval"),
                &format!("write {name}(total)"),
                at.from,
            );
        }
        self.blanks();
        let (name, at) = self.name()?;
        self.blanks();
        match self.eat(')') {
            true => Ok((end, name, at)),
            false => self.wrong("a parenthesis is open", "close it behind the name", at.from),
        }
    }

    /// Letters, digits, `.`, `_`, `-`; what a name has besides stands in quotes.
    fn name(&mut self) -> Result<(String, Place), ConditionError> {
        let (from, mut name) = (self.at, String::new());
        loop {
            name.push_str(&self.take(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '-')).0);
            if !self.eat('"') {
                break;
            }
            name.push_str(&self.take(|c| c != '"').0);
            if !self.eat('"') {
                return self.wrong("a quote is open", "close it behind the name", from);
            }
        }
        match name.is_empty() {
            true => self.wrong("a figure's name is missing here", EXAMPLE, from),
            false => Ok((name, Place { from, to: self.at })),
        }
    }

    fn op(&mut self) -> Result<Op, ConditionError> {
        self.blanks();
        let from = self.at;
        let (sign, _) = self.take(|c| matches!(c, '<' | '>' | '=' | '!' | '≥' | '≤' | '~'));
        match sign.as_str() {
            ">=" | "≥" => Ok(Op::AtLeast),
            ">" => Ok(Op::Above),
            "<=" | "≤" => Ok(Op::AtMost),
            "<" => Ok(Op::Below),
            "" => self.wrong("a comparison is missing here", "write >=, >, <= or <", from),
            _ => self.wrong("a measured figure is not compared so", "write >=, >, <= or <", from),
        }
    }

    fn number(&mut self) -> Result<(f64, Place), ConditionError> {
        let from = self.at;
        let minus = self.eat('-') || self.eat('−');
        if !minus {
            self.eat('+');
        }
        let (digits, _) = self.take(|c| c.is_ascii_digit() || c == '.');
        let number = digits.parse::<f64>().ok().filter(|number| number.is_finite());
        match number {
            Some(number) => Ok((if minus { -number } else { number }, Place { from, to: self.at })),
            None => self.wrong("a number is missing here", "write a number, as 1.5", from),
        }
    }

    fn unit(&mut self) -> (String, Place) {
        let from = self.at;
        let (unit, at) = self.take(|c| c.is_alphabetic() || matches!(c, '%' | '/' | '×'));
        // "and" joins conditions; what goes on like a name is the next figure's.
        let ends = self.peek().is_none_or(|c| c == ',' || c.is_whitespace());
        if unit == "and" || unit == "or" || !ends && !unit.is_empty() && self.chars[from - 1].is_whitespace()
        {
            self.at = from;
            return (String::new(), Place { from, to: from });
        }
        (unit, at)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn names_ends_signs_and_units_are_told_apart() {
        let all = read(" low( total ) ≥ 1.5x,rung.one-send<=-5 % and \"a, b\".c>+1e").unwrap();
        let parts: Vec<_> = all
            .iter()
            .map(|one| (one.end, one.name.as_str(), one.op, one.limit, one.unit.as_str()))
            .collect();
        assert_eq!(
            parts,
            [
                (End::Low, "total", Op::AtLeast, 1.5, "x"),
                (End::Estimate, "rung.one-send", Op::AtMost, -5.0, "%"),
                (End::Estimate, "a, b.c", Op::Above, 1.0, "e")
            ]
        );
        assert_eq!(all[1].text, "rung.one-send<=-5 %");
    }

    #[test]
    fn whatever_is_wrong_is_marked_where_it_stands() {
        for (text, marked) in [
            ("", 0),
            ("total", 5),
            ("total>=", 7),
            ("total==1.5", 5),
            ("total>=1.5 p99<1ms", 11),
            ("total>=1.5,", 11),
            ("total>=1.5 or p99<1ms", 11),
            ("low total>1", 0),
            ("low(total>1", 4),
            ("\"x>1", 0),
            ("total>=1.2.3", 7),
            ("total>=1;rm", 8),
        ] {
            let error = read(text).unwrap_err();
            assert_eq!(error.at.from, marked, "{text}: {error}");
            assert!(!error.hint.is_empty() && error.picture(text)[1].ends_with('^'), "{text}");
        }
        assert!(read(&"total>=1,".repeat(1_000)).is_err());
    }
}
