//! The Python classes of what a reader returns: counts, rejects, batches and their columns.

use crate::column_values::ColumnValues;
use crate::decompressor::Codec;
use crate::digest::ColumnDigest;
use crate::panic_guard::guarded;
use crate::reject::Reject;
use crate::split::{Counts, Split};
use crate::table::Batch;
use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_data::ffi::FFI_ArrowArray;
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType};
use pyo3::exceptions::{PyIndexError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::collections::BTreeMap;
use std::ffi::CStr;

const SCHEMA_CAPSULE: &CStr = c"arrow_schema";
const ARRAY_CAPSULE: &CStr = c"arrow_array";

/// A rejected line.
#[pyclass(name = "Reject", frozen, get_all, module = "ndjson_arrow")]
#[derive(Clone)]
pub struct PyReject {
    source: String,
    offset: u64,
    length: u64,
    reason: &'static str,
    line: Option<Vec<u8>>,
    head: Vec<u8>,
}

#[pymethods]
impl PyReject {
    fn __repr__(&self) -> String {
        format!("Reject({:?}, offset={}, length={}, reason={:?})", self.source, self.offset, self.length, self.reason)
    }
}

impl PyReject {
    pub fn new(source: &str, reject: Reject) -> Self {
        let Reject { offset, length, reason, line, head } = reject;
        Self { source: source.to_owned(), offset, length, reason: reason.text(), line, head }
    }
}

/// The outcome of one split.
#[pyclass(name = "SplitCounts", frozen, get_all, module = "ndjson_arrow")]
pub struct PySplitCounts {
    source: String,
    lines: u64,
    rows: u64,
    blank_lines: u64,
    rejects: BTreeMap<&'static str, u64>,
    bytes: u64,
    codec: Option<&'static str>,
    error: Option<String>,
    first_reject: Option<PyReject>,
    elements: bool,
}

#[pymethods]
impl PySplitCounts {
    fn __repr__(&self) -> String {
        let Self { source, lines, rows, blank_lines, rejects, bytes, error, .. } = self;
        format!(
            "SplitCounts({source:?}, lines={lines}, rows={rows}, blank_lines={blank_lines}, rejects={rejects:?}, \
             bytes={bytes}, error={error:?})"
        )
    }
}

impl PySplitCounts {
    pub fn new(mut split: Split) -> Self {
        if !split.done {
            split.error = Some(format!("not read to its end: closed at byte {}", split.line_offset()));
        }
        let elements = split.has_elements();
        let Counts { lines, rows, blank_lines, rejects, bytes } = split.counts;
        Self {
            lines,
            rows,
            blank_lines,
            rejects: rejects.into_iter().map(|(reason, count)| (reason.text(), count)).collect(),
            bytes,
            codec: split.input.codec().map(Codec::name),
            error: split.error,
            first_reject: split.first_reject.map(|reject| PyReject::new(&split.source, reject)),
            source: split.source,
            elements,
        }
    }
}

/// Rows as string columns.
#[pyclass(name = "Batch", module = "ndjson_arrow")]
pub struct PyBatch {
    pub batch: Batch,
}

#[pymethods]
impl PyBatch {
    #[getter]
    fn rows(&self) -> usize {
        self.batch.rows
    }

    #[getter]
    fn names(&self) -> Vec<String> {
        self.batch.names.clone()
    }

    #[getter]
    fn keys(&self) -> Vec<String> {
        self.batch.keys.clone()
    }

    #[getter]
    fn filled_columns(&self) -> Vec<usize> {
        let has_value = |column: &Option<ColumnValues>| column.as_ref().is_some_and(|values| !values.plain.is_empty());
        (0..self.batch.columns.len()).filter(|&index| has_value(&self.batch.columns[index])).collect()
    }

    fn column(&mut self, index: usize) -> PyResult<PyStringColumn> {
        let (rows, count) = (self.batch.rows, self.batch.names.len());
        let values = self.batch.columns.get_mut(index);
        let values =
            values.ok_or_else(|| PyIndexError::new_err(format!("no column {index}: the batch has {count} columns")))?;
        let values = values.take().ok_or_else(|| PyValueError::new_err(format!("column {index} was already taken")))?;
        let data = guarded(|| array_data(rows, values))?;
        let data = data.map_err(|error| PyRuntimeError::new_err(format!("column {index}: {error}")))?;
        Ok(PyStringColumn { data: Some(data) })
    }

    fn digest(&self, index: usize, previous: (u64, u64, u32, u32)) -> PyResult<(u64, u64, u32, u32)> {
        let values = self.batch.columns.get(index).and_then(Option::as_ref);
        let values =
            values.ok_or_else(|| PyIndexError::new_err(format!("the batch has no column {index} (any more)")))?;
        let (nulls, bytes, lengths, text) = previous;
        let mut digest = ColumnDigest { nulls, bytes, lengths, values: text };
        guarded(|| digest.add(values, self.batch.rows))?;
        Ok((digest.nulls, digest.bytes, digest.lengths, digest.values))
    }

    fn __repr__(&self) -> String {
        format!("Batch(rows={}, columns={})", self.batch.rows, self.batch.names.len())
    }
}

/// One column of a batch, which can be exported to Arrow once.
#[pyclass(name = "StringColumn", module = "ndjson_arrow")]
pub struct PyStringColumn {
    /// None once exported.
    data: Option<ArrayData>,
}

#[pymethods]
impl PyStringColumn {
    /// The Arrow PyCapsule interface: moves the buffers out without a copy.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &mut self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        let _always_utf8 = requested_schema;
        let data = self.data.take().ok_or_else(|| PyValueError::new_err("the column was already exported"))?;
        // The data type is Binary, the schema says utf8: both have the same layout. The values need no second validation,
        // because the lines are valid UTF-8 and are only cut at ASCII characters.
        let schema = guarded(|| FFI_ArrowSchema::try_from(DataType::Utf8))?;
        let schema = schema.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        let array = guarded(|| FFI_ArrowArray::new(&data))?;
        Ok((
            PyCapsule::new_with_value(py, schema, SCHEMA_CAPSULE)?,
            PyCapsule::new_with_value(py, array, ARRAY_CAPSULE)?,
        ))
    }
}

/// The column as Binary, for which Arrow checks offsets and lengths, but not UTF-8 a second time.
fn array_data(rows: usize, mut column: ColumnValues) -> Result<ArrayData, ArrowError> {
    column.pad(rows);
    let (mut offsets, mut data) = (vec![0], Vec::with_capacity(column.plain.len()));
    let mut values = column.iter();
    for row in (0..rows).step_by(8) {
        let validity = column.validity_word(row, 8);
        for bit in 0..8.min(rows - row) {
            if validity >> bit & 1 == 1 {
                data.extend_from_slice(values.next().unwrap_or_default());
            }
            offsets.push(i32::try_from(data.len()).expect("a batch is below 2 GiB"));
        }
    }
    drop(values);
    let validity = (!column.validity.is_empty()).then(|| Buffer::from_vec(column.validity));
    let buffers = vec![Buffer::from_vec(offsets), Buffer::from_vec(data)];
    ArrayData::try_new(DataType::Binary, rows, validity, 0, buffers, Vec::new())
}
