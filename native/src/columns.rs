//! The columns of a table: found by key, guessed from the column before, made for new keys.

use crate::column_values::Values;
use crate::names;
use foldhash::fast::RandomState;
use std::collections::HashMap;

/// A key with more bytes than this gets no column (its name and metadata would cost more than it is worth) and goes
/// to `_rescued`, so that remembered keys cannot grow the memory either.
pub const MAX_KEY: usize = 8192;

/// "No column": the start of a row for the prediction, and "not found".
pub const NONE: u32 = u32::MAX;

pub struct Column {
    pub name: String,
    /// The JSON key; None for our own columns and for a hashed known name until its key is met.
    pub key: Option<String>,
    /// The key as it usually stands in a line, with quotes and colon; empty if it cannot stand so.
    usual: Box<[u8]>,
    /// The column that followed this one when last seen: the guess that makes rows of one shape cheap.
    next: u32,
    pub values: Values,
    /// Bytes of its values in the last batch.
    pub last_bytes: usize,
}

pub struct Columns {
    columns: Vec<Column>,
    by_key: HashMap<String, u32, RandomState>,
    by_name: HashMap<String, u32>,
    unbound: usize,
    limit: usize,
    first: u32,
    /// The column of the current row that was written last.
    previous: Option<u32>,
}

impl Columns {
    /// `known` are encoded names, valid and distinct; `own` follow them.
    pub fn new(known: Vec<String>, own: &[&str], column_limit: usize) -> Self {
        let mut columns = Self {
            columns: Vec::new(),
            by_key: HashMap::default(),
            by_name: HashMap::new(),
            unbound: 0,
            limit: column_limit.max(known.len()) + own.len(),
            first: NONE,
            previous: None,
        };
        for name in known {
            let key = names::original_key(&name);
            columns.unbound += usize::from(key.is_none());
            columns.add(name, key);
        }
        for name in own {
            columns.add((*name).to_owned(), None);
        }
        columns
    }

    pub fn count(&self) -> usize {
        self.columns.len()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Column> {
        self.columns.iter_mut()
    }

    #[inline]
    pub fn values(&mut self, column: u32) -> &mut Values {
        &mut self.columns[column as usize].values
    }

    /// A row begins.
    pub fn begin_row(&mut self) {
        self.previous = None;
    }

    /// The column was written: the next guess goes from here.
    #[inline]
    pub fn written(&mut self, column: u32) {
        self.previous = Some(column);
    }

    /// The column that followed the previous one last time, and its key as it usually stands in a line.
    #[inline]
    pub fn guess(&self) -> Option<(u32, &[u8])> {
        let guess = self.successor();
        let usual = &*self.columns.get(guess as usize)?.usual;
        (!usual.is_empty()).then_some((guess, usual))
    }

    /// The column of a key as it stands between its quotes, if it is known and needs no escapes.
    #[inline]
    pub fn plain_column(&mut self, key: &str) -> Option<u32> {
        let column = self.by_key.get(key).copied()?;
        if self.columns[column as usize].usual.is_empty() {
            return None;
        }
        self.follow(column);
        Some(column)
    }

    #[inline]
    fn successor(&self) -> u32 {
        match self.previous {
            None => self.first,
            Some(previous) => self.columns[previous as usize].next,
        }
    }

    /// The column of a key, found or made; `NONE` if the member belongs into `_rescued`.
    #[inline]
    pub fn column_of(&mut self, key: &str) -> u32 {
        let guess = self.successor();
        if let Some(column) = self.columns.get(guess as usize)
            && column.key.as_deref() == Some(key)
        {
            return guess;
        }
        let found = self.by_key.get(key).copied();
        let column = found.unwrap_or_else(|| self.meet(key));
        if column != NONE {
            self.follow(column);
        }
        column
    }

    /// Remembers what followed the previous column.
    #[inline]
    fn follow(&mut self, column: u32) {
        match self.previous {
            None => self.first = column,
            Some(previous) => self.columns[previous as usize].next = column,
        }
    }

    /// A key not seen before.
    #[cold]
    fn meet(&mut self, key: &str) -> u32 {
        let full = self.columns.len() >= self.limit;
        if key.len() > MAX_KEY || (full && self.unbound == 0) {
            return NONE;
        }
        let name = names::column_name(key);
        match self.by_name.get(&name).copied() {
            Some(column) if self.columns[column as usize].key.is_none() => {
                self.unbound -= 1;
                self.columns[column as usize].key = Some(key.to_owned());
                self.columns[column as usize].usual = usual(key);
                self.by_key.insert(key.to_owned(), column);
                column
            }
            // Another key has the same hash: the first keeps the column.
            Some(_) => NONE,
            None if full => NONE,
            None => self.add(name, Some(key.to_owned())),
        }
    }

    fn add(&mut self, name: String, key: Option<String>) -> u32 {
        let index = u32::try_from(self.columns.len()).expect("fewer than 2^32 columns");
        if let Some(key) = &key {
            self.by_key.insert(key.clone(), index);
        }
        self.by_name.insert(name.clone(), index);
        let usual = key.as_deref().map(usual).unwrap_or_default();
        self.columns.push(Column { name, key, usual, next: NONE, values: Values::default(), last_bytes: 0 });
        index
    }

    /// Forgets the columns from number `count` on.
    pub fn truncate(&mut self, count: usize) {
        for column in self.columns.drain(count..) {
            self.by_name.remove(&column.name);
            if let Some(key) = &column.key {
                self.by_key.remove(key);
            }
        }
    }
}

fn usual(key: &str) -> Box<[u8]> {
    let plain = key.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\');
    if plain { format!("\"{key}\":").into_bytes().into() } else { Box::default() }
}
