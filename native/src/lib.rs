//! NDJSON bytes in, string columns, rejects and counts out.
#![forbid(unsafe_code)]

use pyo3::prelude::*;

#[pymodule]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("REASONS", ("not JSON",))
    }
}
