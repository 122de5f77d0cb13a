//! Rows into string columns. Columns are found while reading; a row that turns out to be a reject leaves no trace.

use crate::column_values::Values;
use crate::names::{self, ARRIVED_AT, OFFSET, RESCUED, SOURCE};
use foldhash::fast::RandomState;
use std::collections::{HashMap, HashSet};

/// A key with more bytes than this gets no column (its name and metadata would cost more than it is worth) and goes
/// to `_rescued`, so that remembered keys cannot grow the memory either.
pub const MAX_KEY: usize = 8192;

/// Room for this part more than the last batch took.
const MARGIN: usize = 32;

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
    values: Values,
    /// Bytes of its values in the last batch.
    last_bytes: usize,
}

/// Rows taken out of the table; columns are moved out one by one.
pub struct Batch {
    pub rows: usize,
    /// As Arrow would hold them: the values, and four bytes for each row of each column.
    pub bytes: usize,
    pub names: Vec<String>,
    pub keys: Vec<String>,
    /// A column whose last rows are NULL may lack them.
    pub columns: Vec<Option<Values>>,
}

pub struct Table {
    columns: Vec<Column>,
    by_key: HashMap<String, u32, RandomState>,
    by_name: HashMap<String, u32>,
    unbound: usize,
    rescued: u32,
    limit: usize,
    provenance: bool,
    rows: usize,
    bytes: usize,
    first: u32,
    row: Row,
}

/// What the current row has done so far, so that it can be undone.
#[derive(Default)]
struct Row {
    touched: Vec<u32>,
    previous: Option<u32>,
    columns_before: usize,
    bytes: usize,
    rescued: Vec<u8>,
    rescued_keys: HashSet<String>,
}

impl Table {
    /// `known` are encoded names, valid and distinct.
    pub fn new(known: Vec<String>, column_limit: usize, provenance: bool) -> Self {
        let rescued = u32::try_from(known.len()).expect("fewer than 2^32 columns");
        let own: &[&str] = if provenance { &[RESCUED, SOURCE, ARRIVED_AT, OFFSET] } else { &[RESCUED] };
        let mut table = Self {
            columns: Vec::new(),
            by_key: HashMap::default(),
            by_name: HashMap::new(),
            unbound: 0,
            rescued,
            limit: column_limit.max(known.len()) + own.len(),
            provenance,
            rows: 0,
            bytes: 0,
            first: NONE,
            row: Row::default(),
        };
        for name in known {
            let key = names::original_key(&name);
            table.unbound += usize::from(key.is_none());
            table.add(name, key);
        }
        for name in own {
            table.add((*name).to_owned(), None);
        }
        table.row.columns_before = table.columns.len();
        table
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes of the columns as Arrow would hold them: the values, and four for each row of each column.
    pub fn size(&self) -> usize {
        self.bytes + self.rows * self.columns.len() * size_of::<i32>()
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
        match self.row.previous {
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
        match self.row.previous {
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

    /// Writes a value of the current row; false if the row has this column already.
    #[inline]
    #[must_use]
    pub fn put(&mut self, column: u32, value: &[u8]) -> bool {
        self.put_within(column, value, value.len())
    }

    /// The same for the first `length` bytes of what stands there: copying a little too much is quicker for short ones.
    #[inline]
    #[must_use]
    pub fn put_within(&mut self, column: u32, bytes: &[u8], length: usize) -> bool {
        let values = &mut self.columns[column as usize].values;
        if values.rows() > self.rows {
            return false;
        }
        values.push(self.rows, bytes, length);
        self.row.touched.push(column);
        self.row.previous = Some(column);
        self.row.bytes += length;
        true
    }

    /// A JSON null: NULL in the column, but the key counts as met.
    #[inline]
    #[must_use]
    pub fn put_null(&mut self, column: u32) -> bool {
        let values = &mut self.columns[column as usize].values;
        if values.rows() > self.rows {
            return false;
        }
        values.pad(self.rows + 1);
        self.row.touched.push(column);
        self.row.previous = Some(column);
        true
    }

    /// A member without a column, as it stood (`raw_key` with its quotes); false if the row has this key already.
    #[must_use]
    pub fn rescue(&mut self, key: &str, raw_key: &[u8], raw_value: &[u8]) -> bool {
        let row = &mut self.row;
        if !row.rescued_keys.insert(key.to_owned()) {
            return false;
        }
        row.rescued.push(if row.rescued.is_empty() { b'{' } else { b',' });
        row.rescued.extend_from_slice(raw_key);
        row.rescued.push(b':');
        row.rescued.extend_from_slice(raw_value);
        true
    }

    /// The row is complete.
    pub fn commit(&mut self, source: &str, arrived_at: Option<&str>, offset: u64) {
        if !self.row.rescued.is_empty() {
            let mut text = std::mem::take(&mut self.row.rescued);
            text.push(b'}');
            let _fresh = self.put(self.rescued, &text);
            self.row.rescued_keys = HashSet::new();
        }
        if self.provenance {
            let _fresh = self.put(self.rescued + 1, source.as_bytes());
            if let Some(arrived_at) = arrived_at {
                let _fresh = self.put(self.rescued + 2, arrived_at.as_bytes());
            }
            let _fresh = self.put(self.rescued + 3, offset.to_string().as_bytes());
        }
        self.rows += 1;
        self.bytes += self.row.bytes;
        self.begin();
    }

    /// The row is a reject: everything it wrote, and every column it brought, goes.
    pub fn rollback(&mut self) {
        for &column in &self.row.touched {
            self.columns[column as usize].values.take_back(self.rows);
        }
        for column in self.columns.drain(self.row.columns_before..) {
            self.by_name.remove(&column.name);
            if let Some(key) = &column.key {
                self.by_key.remove(key);
            }
        }
        self.row.rescued = Vec::new();
        self.row.rescued_keys = HashSet::new();
        self.begin();
    }

    fn begin(&mut self) {
        self.row.touched.clear();
        self.row.previous = None;
        self.row.columns_before = self.columns.len();
        self.row.bytes = 0;
    }

    /// Makes room for a batch like the last, as columns that grow are copied time and again and leave holes in the heap.
    /// Not earlier than its first row, so that the last batch's own memory is free by now.
    pub fn reserve(&mut self) {
        if self.rows == 0 {
            for column in self.columns.iter_mut().filter(|column| column.last_bytes > 0) {
                column.values.reserve(column.last_bytes + column.last_bytes / MARGIN);
            }
        }
    }

    /// All rows so far; None if there are none. The columns stay known, in this order.
    pub fn take(&mut self) -> Option<Batch> {
        if self.rows == 0 {
            return None;
        }
        let bytes = self.size();
        let rows = std::mem::take(&mut self.rows);
        self.bytes = 0;
        let mut batch = Batch { rows, bytes, names: Vec::new(), keys: Vec::new(), columns: Vec::new() };
        for column in &mut self.columns {
            let values = std::mem::take(&mut column.values);
            column.last_bytes = values.plain.len();
            batch.names.push(column.name.clone());
            batch.keys.push(column.key.clone().unwrap_or_default());
            batch.columns.push(Some(values));
        }
        Some(batch)
    }
}

fn usual(key: &str) -> Box<[u8]> {
    let plain = key.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\');
    if plain { format!("\"{key}\":").into_bytes().into() } else { Box::default() }
}
