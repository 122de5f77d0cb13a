//! Rows into string columns. Columns are found while reading; a row that turns out to be a reject leaves no trace.

use crate::column_values::Values;
use crate::columns::Columns;
use crate::names::{ARRIVED_AT, OFFSET, RESCUED, SOURCE};
use std::collections::HashSet;

/// Room for this part more than the last batch took.
const MARGIN: usize = 32;

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
    columns: Columns,
    rescued: u32,
    provenance: bool,
    rows: usize,
    bytes: usize,
    row: Row,
}

/// What the current row has done so far, so that it can be undone.
#[derive(Default)]
struct Row {
    touched: Vec<u32>,
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
        let columns = Columns::new(known, own, column_limit);
        let row = Row { columns_before: columns.count(), ..Row::default() };
        Self { columns, rescued, provenance, rows: 0, bytes: 0, row }
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes of the columns as Arrow would hold them: the values, and four for each row of each column.
    pub fn size(&self) -> usize {
        self.bytes + self.rows * self.columns.count() * size_of::<i32>()
    }

    #[inline]
    pub fn columns(&mut self) -> &mut Columns {
        &mut self.columns
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
        let values = self.columns.values(column);
        if values.rows() > self.rows {
            return false;
        }
        values.push(self.rows, bytes, length);
        self.row.touched.push(column);
        self.columns.written(column);
        self.row.bytes += length;
        true
    }

    /// A JSON null: NULL in the column, but the key counts as met.
    #[inline]
    #[must_use]
    pub fn put_null(&mut self, column: u32) -> bool {
        let values = self.columns.values(column);
        if values.rows() > self.rows {
            return false;
        }
        values.pad(self.rows + 1);
        self.row.touched.push(column);
        self.columns.written(column);
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
            self.columns.values(column).take_back(self.rows);
        }
        self.columns.truncate(self.row.columns_before);
        self.row.rescued = Vec::new();
        self.row.rescued_keys = HashSet::new();
        self.begin();
    }

    fn begin(&mut self) {
        self.row.touched.clear();
        self.columns.begin_row();
        self.row.columns_before = self.columns.count();
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
        for column in self.columns.iter_mut() {
            let values = std::mem::take(&mut column.values);
            column.last_bytes = values.plain.len();
            batch.names.push(column.name.clone());
            batch.keys.push(column.key.clone().unwrap_or_default());
            batch.columns.push(Some(values));
        }
        Some(batch)
    }
}
