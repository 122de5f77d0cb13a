//! The columns of a table: found by key, predicted from the previous column, and added for new keys.

use crate::column_values::ColumnValues;
use crate::names;
use foldhash::fast::RandomState;
use std::collections::HashMap;

/// Maximum length of a key with a column: a longer name and its metadata would cost too much. Members with a longer key
/// go to `_rescued`, so that the stored keys cannot use unbounded memory.
pub const MAX_KEY_BYTES: usize = 8192;

/// Not a column: a member that goes to `_rescued`, or a prediction that does not exist.
pub const NO_COLUMN: u32 = u32::MAX;

pub struct Column {
    pub name: String,
    /// The JSON key; None for a system column, and for a known column with a hashed name until its key is found.
    pub key: Option<String>,
    /// The key as most lines have it, with quotes and colon; empty if the key needs escapes.
    key_literal: Box<[u8]>,
    /// The column that followed this one last time.
    successor: u32,
    pub values: ColumnValues,
    /// Bytes of its values in the last batch.
    pub last_batch_bytes: usize,
}

/// Rows of one source mostly have the same keys in the same order. So each column remembers its successor, which is the
/// prediction for the next member: comparing bytes is cheaper than a hash table.
pub struct Columns {
    columns: Vec<Column>,
    by_key: HashMap<String, u32, RandomState>,
    by_name: HashMap<String, u32>,
    /// Known columns with a hashed name whose key is not found yet.
    keyless_known: usize,
    /// Maximum number of columns, including system columns.
    limit: usize,
    /// The column that the last row started with.
    first: u32,
    /// The column of the current row that was written last.
    previous: Option<u32>,
}

impl Columns {
    /// `known` are valid column names without duplicates; the system columns follow them.
    pub fn new(known: Vec<String>, system: &[&str], column_limit: usize) -> Self {
        let mut columns = Self {
            columns: Vec::new(),
            by_key: HashMap::default(),
            by_name: HashMap::new(),
            keyless_known: 0,
            limit: column_limit.max(known.len()) + system.len(),
            first: NO_COLUMN,
            previous: None,
        };
        for name in known {
            let key = names::original_key(&name);
            columns.keyless_known += usize::from(key.is_none());
            columns.add(name, key);
        }
        for name in system {
            columns.add((*name).to_owned(), None);
        }
        columns
    }

    pub fn count(&self) -> usize {
        self.columns.len()
    }

    /// Maximum number of columns, including system columns; known columns always exist, even beyond it.
    #[inline]
    pub fn limit(&self) -> usize {
        self.limit
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Column> {
        self.columns.iter_mut()
    }

    #[inline]
    pub fn values(&mut self, column: u32) -> &mut ColumnValues {
        &mut self.columns[column as usize].values
    }

    pub fn begin_row(&mut self) {
        self.previous = None;
    }

    /// The column of the current row that was written last: the next prediction is its successor.
    #[inline]
    pub fn set_previous(&mut self, column: u32) {
        self.previous = Some(column);
    }

    /// The predicted column and its key literal; None if there is no prediction, or if its key needs escapes.
    #[inline]
    pub fn prediction(&self) -> Option<(u32, &[u8])> {
        let predicted = self.predicted();
        let key_literal = &*self.columns.get(predicted as usize)?.key_literal;
        (!key_literal.is_empty()).then_some((predicted, key_literal))
    }

    /// The column of the text between the quotes of a key; None if no column has this key, or if the key needs escapes.
    #[inline]
    pub fn find_unescaped(&mut self, key: &str) -> Option<u32> {
        let column = self.by_key.get(key).copied()?;
        if self.columns[column as usize].key_literal.is_empty() {
            return None;
        }
        self.set_successor(column);
        Some(column)
    }

    /// The column of a key, added if it is new; `NO_COLUMN` if the member goes to `_rescued`.
    #[inline]
    pub fn find_or_add(&mut self, key: &str) -> u32 {
        let predicted = self.predicted();
        if let Some(column) = self.columns.get(predicted as usize)
            && column.key.as_deref() == Some(key)
        {
            return predicted;
        }
        let found = self.by_key.get(key).copied();
        let column = found.unwrap_or_else(|| self.add_key(key));
        if column != NO_COLUMN {
            self.set_successor(column);
        }
        column
    }

    #[inline]
    fn predicted(&self) -> u32 {
        match self.previous {
            None => self.first,
            Some(previous) => self.columns[previous as usize].successor,
        }
    }

    #[inline]
    fn set_successor(&mut self, column: u32) {
        match self.previous {
            None => self.first = column,
            Some(previous) => self.columns[previous as usize].successor = column,
        }
    }

    #[cold]
    fn add_key(&mut self, key: &str) -> u32 {
        let full = self.columns.len() >= self.limit;
        if key.len() > MAX_KEY_BYTES || (full && self.keyless_known == 0) {
            return NO_COLUMN;
        }
        let name = names::column_name(key);
        match self.by_name.get(&name).copied() {
            Some(column) if self.columns[column as usize].key.is_none() => {
                self.keyless_known -= 1;
                self.columns[column as usize].key = Some(key.to_owned());
                self.columns[column as usize].key_literal = key_literal(key);
                self.by_key.insert(key.to_owned(), column);
                column
            }
            // A hash collision: the column belongs to the first key.
            Some(_) => NO_COLUMN,
            None if full => NO_COLUMN,
            None => self.add(name, Some(key.to_owned())),
        }
    }

    fn add(&mut self, name: String, key: Option<String>) -> u32 {
        let index = u32::try_from(self.columns.len()).expect("fewer than 2^32 columns");
        if let Some(key) = &key {
            self.by_key.insert(key.clone(), index);
        }
        self.by_name.insert(name.clone(), index);
        self.columns.push(Column {
            name,
            key_literal: key.as_deref().map(key_literal).unwrap_or_default(),
            key,
            successor: NO_COLUMN,
            values: ColumnValues::default(),
            last_batch_bytes: 0,
        });
        index
    }

    /// Removes all columns but the first `count`.
    pub fn truncate(&mut self, count: usize) {
        for column in self.columns.drain(count..) {
            self.by_name.remove(&column.name);
            if let Some(key) = &column.key {
                self.by_key.remove(key);
            }
        }
    }
}

fn key_literal(key: &str) -> Box<[u8]> {
    let needs_escapes = key.bytes().any(|byte| byte < b' ' || byte == b'"' || byte == b'\\');
    if needs_escapes { Box::default() } else { format!("\"{key}\":").into_bytes().into() }
}
