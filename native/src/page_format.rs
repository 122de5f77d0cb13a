//! The encoding of values and the compression of Parquet pages.

use parquet::basic::{CompressionCodec, Encoding};
use std::io;

/// zstd's fastest level but the negative ones, which give up too much of the ratio (docs/performance.md).
const ZSTD_LEVEL: i32 = 1;

/// How the pages of a file are written.
pub struct PageFormat {
    pub encoding: ValueEncoding,
    pub compressor: PageCompressor,
}

/// How the values of a page are written, before compression.
#[derive(Clone, Copy, PartialEq)]
pub enum ValueEncoding {
    Plain,
    DeltaLength,
}

/// One compression context, which is reused for all pages of a file.
pub enum PageCompressor {
    None,
    Snappy(Box<snap::raw::Encoder>),
    Zstd(zstd::bulk::Compressor<'static>),
}

impl ValueEncoding {
    /// By the name that the settings use; None for an unknown name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "plain" => Some(Self::Plain),
            "delta_length" => Some(Self::DeltaLength),
            _ => None,
        }
    }

    /// As page headers and footer have it.
    pub fn in_parquet(self) -> Encoding {
        match self {
            Self::Plain => Encoding::PLAIN,
            Self::DeltaLength => Encoding::DELTA_LENGTH_BYTE_ARRAY,
        }
    }
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
