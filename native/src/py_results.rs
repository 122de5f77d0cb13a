//! What Python gets to see: counts, rejects and batches.

use crate::column_values::Values;
use crate::inflate::Codec;
use crate::panic_guard::guarded;
use crate::{reject, split, table};
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

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";

#[pyclass(frozen, get_all, module = "ndjson_arrow")]
#[derive(Clone)]
pub struct Reject {
    source: String,
    offset: u64,
    length: u64,
    reason: &'static str,
    line: Option<Vec<u8>>,
}

#[pymethods]
impl Reject {
    fn __repr__(&self) -> String {
        format!("Reject({:?}, offset={}, length={}, reason={:?})", self.source, self.offset, self.length, self.reason)
    }
}

impl Reject {
    pub fn new(source: &str, reject: reject::Reject) -> Self {
        let reject::Reject { offset, length, reason, line } = reject;
        Self { source: source.to_owned(), offset, length, reason: reason.text(), line }
    }
}

#[pyclass(frozen, get_all, module = "ndjson_arrow")]
pub struct SplitCounts {
    source: String,
    lines: u64,
    rows: u64,
    blank_lines: u64,
    rejects: BTreeMap<&'static str, u64>,
    bytes: u64,
    inflated: Option<&'static str>,
    error: Option<String>,
    first_reject: Option<Reject>,
}

#[pymethods]
impl SplitCounts {
    fn __repr__(&self) -> String {
        let Self { source, lines, rows, blank_lines, rejects, bytes, error, .. } = self;
        format!(
            "SplitCounts({source:?}, lines={lines}, rows={rows}, blank_lines={blank_lines}, rejects={rejects:?}, \
             bytes={bytes}, error={error:?})"
        )
    }
}

impl SplitCounts {
    pub fn new(mut split: split::Split) -> Self {
        if !split.done {
            split.error = Some(format!("not read to its end: closed at byte {}", split.offset()));
        }
        let split::Counts { lines, rows, blank_lines, rejects, bytes } = split.counts;
        Self {
            lines,
            rows,
            blank_lines,
            rejects: rejects.into_iter().map(|(reason, count)| (reason.text(), count)).collect(),
            bytes,
            inflated: split.input.codec().map(Codec::name),
            error: split.error,
            first_reject: split.first_reject.map(|reject| Reject::new(&split.source, reject)),
            source: split.source,
        }
    }
}

#[pyclass(module = "ndjson_arrow")]
pub struct Batch {
    pub batch: table::Batch,
}

#[pymethods]
impl Batch {
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

    fn column(&mut self, index: usize) -> PyResult<StringColumn> {
        let (rows, width) = (self.batch.rows, self.batch.names.len());
        let slot = self.batch.columns.get_mut(index);
        let slot = slot.ok_or_else(|| PyIndexError::new_err(format!("no column {index}: the batch has {width}")))?;
        let column = slot.take().ok_or_else(|| PyValueError::new_err(format!("column {index} was taken already")))?;
        let data = guarded(|| array_data(rows, column))?;
        let data = data.map_err(|error| PyRuntimeError::new_err(format!("column {index}: {error}")))?;
        Ok(StringColumn { data: Some(data) })
    }

    fn __repr__(&self) -> String {
        format!("Batch(rows={}, columns={})", self.batch.rows, self.batch.names.len())
    }
}

/// One column out of a batch, until Arrow takes it over.
#[pyclass(module = "ndjson_arrow")]
pub struct StringColumn {
    data: Option<ArrayData>,
}

#[pymethods]
impl StringColumn {
    /// The Arrow PyCapsule interface: the buffers change hands.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &mut self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        let _always_utf8 = requested_schema;
        let data = self.data.take().ok_or_else(|| PyValueError::new_err("the column was handed over already"))?;
        // The lines were checked to be UTF-8 and cut at ASCII characters only: the type may say so without a second look.
        let schema = guarded(|| FFI_ArrowSchema::try_from(DataType::Utf8))?;
        let schema = schema.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        let array = guarded(|| FFI_ArrowArray::new(&data))?;
        Ok((PyCapsule::new_with_value(py, schema, SCHEMA)?, PyCapsule::new_with_value(py, array, ARRAY)?))
    }
}

/// Bytes instead of text, whose layout is the same: of these, only offsets and lengths are checked once more.
fn array_data(rows: usize, mut column: Values) -> Result<ArrayData, ArrowError> {
    column.pad(rows);
    let (mut offsets, mut data) = (vec![0], Vec::with_capacity(column.plain.len()));
    let mut values = column.iter();
    for row in (0..rows).step_by(8) {
        let present = column.present(row, 8);
        for bit in 0..8.min(rows - row) {
            if present >> bit & 1 == 1 {
                data.extend_from_slice(values.next().unwrap_or_default());
            }
            offsets.push(i32::try_from(data.len()).expect("a batch stays below 2 GiB"));
        }
    }
    drop(values);
    let validity = (!column.present.is_empty()).then(|| Buffer::from_vec(column.present));
    let buffers = vec![Buffer::from_vec(offsets), Buffer::from_vec(data)];
    ArrayData::try_new(DataType::Binary, rows, validity, 0, buffers, Vec::new())
}
