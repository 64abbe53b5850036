//! Values that have numbers, in the order in which they came: a table of a record in the making.

use std::collections::HashMap;
use std::hash::Hash;

/// Each value once.
#[derive(Debug)]
pub(crate) struct Table<T> {
    rows: Vec<T>,
    known: HashMap<T, u32>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table { rows: Vec::new(), known: HashMap::new() }
    }
}

impl<T: Clone + Eq + Hash> Table<T> {
    /// The number of a value: a new one if it was not there.
    pub(crate) fn number(&mut self, value: T) -> u32 {
        let next = u32::try_from(self.rows.len()).expect("a record has less than four billion rows");
        let number = *self.known.entry(value).or_insert_with_key(|value| {
            self.rows.push(value.clone());
            next
        });
        debug_assert!((number as usize) < self.rows.len(), "a number has its row");
        debug_assert_eq!(self.rows.len(), self.known.len(), "each value has one row");
        number
    }

    /// A row, to fill in what is no part of the value that it is found by.
    pub(crate) fn row_mut(&mut self, number: u32) -> &mut T {
        &mut self.rows[number as usize]
    }

    /// All of them, by number.
    pub(crate) fn rows(&self) -> &[T] {
        &self.rows
    }

    /// All of them, by number.
    pub(crate) fn into_rows(self) -> Vec<T> {
        self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_keeps_the_number_that_it_came_with() {
        let mut table = Table::default();
        assert_eq!(["a", "b", "a", "c"].map(|value| table.number(value)), [0, 1, 0, 2]);
        assert_eq!(table.rows(), ["a", "b", "c"]);
    }
}
