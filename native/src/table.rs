//! Rows into string columns. New columns are added while rows are written; a rejected row leaves nothing behind.

use crate::column_values::ColumnValues;
use crate::columns::Columns;
use crate::names::{ARRIVED_AT, OFFSET, RESCUED, SOURCE};
use std::collections::HashSet;

/// A column reserves the bytes of the last batch plus this part of them: one 32nd.
const RESERVE_MARGIN_DIVISOR: usize = 32;

/// Bytes counted for each row, even without values, so that a file of empty objects fills a batch as well.
const ROW_BYTES: usize = 8;
/// Bytes of the length that is kept with each value.
const LENGTH_BYTES: usize = size_of::<u32>();

/// The rows of a table. Each column can be moved out once.
pub struct Batch {
    pub rows: usize,
    pub names: Vec<String>,
    /// The JSON keys of the columns; empty if a column has none, or its key is not found yet.
    pub keys: Vec<String>,
    /// None once moved out. A column can have fewer rows than the batch: the rest is NULL.
    pub columns: Vec<Option<ColumnValues>>,
}

/// Members are written to the current row until it is committed or rolled back.
pub struct Table {
    columns: Columns,
    /// The column `_rescued`; the provenance columns follow it.
    rescued: u32,
    provenance: bool,
    rows: usize,
    bytes: usize,
    row: CurrentRow,
}

/// What the current row has written, so that it can be rolled back.
#[derive(Default)]
struct CurrentRow {
    written: Vec<u32>,
    columns_before: usize,
    bytes: usize,
    /// The text of `_rescued` so far, without its closing brace.
    rescued: Vec<u8>,
    rescued_keys: HashSet<String>,
}

impl Table {
    /// `known` are valid column names without duplicates.
    pub fn new(known: Vec<String>, column_limit: usize, provenance: bool) -> Self {
        let rescued = u32::try_from(known.len()).expect("fewer than 2^32 columns");
        let system: &[&str] = if provenance { &[RESCUED, SOURCE, ARRIVED_AT, OFFSET] } else { &[RESCUED] };
        let columns = Columns::new(known, system, column_limit);
        let row = CurrentRow { columns_before: columns.count(), ..CurrentRow::default() };
        Self { columns, rescued, provenance, rows: 0, bytes: 0, row }
    }

    /// Bytes of the committed rows: the values, and the bitmaps of all columns that the table can get. Any row can add
    /// all these columns, each with a bit for every row before it.
    pub fn size(&self) -> usize {
        self.bytes + self.rows * ROW_BYTES + self.rows * self.columns.limit() / 8
    }

    #[inline]
    pub fn columns(&mut self) -> &mut Columns {
        &mut self.columns
    }

    /// Writes a value to the current row; false if the row already has this column.
    #[inline]
    #[must_use]
    pub fn put(&mut self, column: u32, value: &[u8]) -> bool {
        self.put_prefix(column, value, value.len())
    }

    /// Writes the first `length` bytes as `put` does. With more bytes than `length`, a short value is copied faster.
    #[inline]
    #[must_use]
    pub fn put_prefix(&mut self, column: u32, bytes: &[u8], length: usize) -> bool {
        let values = self.columns.values(column);
        if values.rows() > self.rows {
            return false;
        }
        values.push(self.rows, bytes, length);
        self.row.written.push(column);
        self.columns.set_previous(column);
        self.row.bytes += length + LENGTH_BYTES;
        true
    }

    /// Writes a JSON null as `put` does: the value is NULL, and a second member with this key is a duplicate.
    #[inline]
    #[must_use]
    pub fn put_null(&mut self, column: u32) -> bool {
        let values = self.columns.values(column);
        if values.rows() > self.rows {
            return false;
        }
        values.pad(self.rows + 1);
        self.row.written.push(column);
        self.columns.set_previous(column);
        true
    }

    /// Adds a member verbatim to `_rescued` (`raw_key` with its quotes); false if the row already has this key there.
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

    /// Completes the current row.
    pub fn commit(&mut self, source: &str, arrived_at: Option<&str>, offset: u64) {
        if !self.row.rescued.is_empty() {
            let mut text = std::mem::take(&mut self.row.rescued);
            text.push(b'}');
            self.put_system_value(self.rescued, &text);
            self.row.rescued_keys = HashSet::new();
        }
        if self.provenance {
            self.put_system_value(self.rescued + 1, source.as_bytes());
            if let Some(arrived_at) = arrived_at {
                self.put_system_value(self.rescued + 2, arrived_at.as_bytes());
            }
            self.put_system_value(self.rescued + 3, offset.to_string().as_bytes());
        }
        self.rows += 1;
        self.bytes += self.row.bytes;
        self.begin_row();
    }

    /// No key has the name of a system column, so that each is written once in a row.
    fn put_system_value(&mut self, column: u32, value: &[u8]) {
        let _is_first = self.put(column, value);
    }

    /// Removes what the current row has written, and the columns that it has added.
    pub fn rollback(&mut self) {
        for &column in &self.row.written {
            self.columns.values(column).remove_row(self.rows);
        }
        self.columns.truncate(self.row.columns_before);
        self.row.rescued = Vec::new();
        self.row.rescued_keys = HashSet::new();
        self.begin_row();
    }

    fn begin_row(&mut self) {
        self.columns.begin_row();
        self.row.written.clear();
        self.row.columns_before = self.columns.count();
        self.row.bytes = 0;
    }

    /// Reserves the memory that the last batch needed: growing columns are copied repeatedly and fragment the heap.
    ///
    /// It does nothing after the first row. Call it before the first row and not with `take_batch`, when the memory of
    /// the last batch is not yet free.
    pub fn reserve(&mut self) {
        if self.rows == 0 {
            for column in self.columns.iter_mut().filter(|column| column.last_batch_bytes > 0) {
                column.values.reserve(column.last_batch_bytes + column.last_batch_bytes / RESERVE_MARGIN_DIVISOR);
            }
        }
    }

    /// Moves the committed rows out; None if there are none. The columns and their order stay.
    pub fn take_batch(&mut self) -> Option<Batch> {
        if self.rows == 0 {
            return None;
        }
        let rows = std::mem::take(&mut self.rows);
        self.bytes = 0;
        let mut batch = Batch { rows, names: Vec::new(), keys: Vec::new(), columns: Vec::new() };
        for column in self.columns.iter_mut() {
            let values = std::mem::take(&mut column.values);
            column.last_batch_bytes = values.plain.len();
            batch.names.push(column.name.clone());
            batch.keys.push(column.key.clone().unwrap_or_default());
            batch.columns.push(Some(values));
        }
        Some(batch)
    }
}
