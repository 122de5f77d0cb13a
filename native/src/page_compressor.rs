//! The compression of Parquet pages.

use parquet::basic::CompressionCodec;
use std::io;

/// zstd's fastest level but the negative ones, which give up too much of the ratio (docs/performance.md).
const ZSTD_LEVEL: i32 = 1;

/// One compression context, which is reused for all pages of a file.
pub enum PageCompressor {
    None,
    Snappy(Box<snap::raw::Encoder>),
    Zstd(zstd::bulk::Compressor<'static>),
}

impl PageCompressor {
    /// By the name that the settings use; `Ok(None)` for an unknown name.
    pub fn named(name: &str) -> io::Result<Option<Self>> {
        Ok(match name {
            "none" => Some(Self::None),
            "snappy" => Some(Self::Snappy(Box::new(snap::raw::Encoder::new()))),
            "zstd" => Some(Self::Zstd(zstd::bulk::Compressor::new(ZSTD_LEVEL)?)),
            _ => None,
        })
    }

    /// The codec as the footer has it.
    pub fn codec(&self) -> CompressionCodec {
        match self {
            Self::None => CompressionCodec::UNCOMPRESSED,
            Self::Snappy(_) => CompressionCodec::SNAPPY,
            Self::Zstd(_) => CompressionCodec::ZSTD,
        }
    }

    pub fn compress(&mut self, page: &[u8]) -> io::Result<Vec<u8>> {
        match self {
            Self::None => Ok(page.to_vec()),
            Self::Snappy(encoder) => Ok(encoder.compress_vec(page)?),
            Self::Zstd(compressor) => compressor.compress(page),
        }
    }
}
