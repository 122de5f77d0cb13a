//! The encoding of values and the compression of Parquet pages.

use parquet::basic::{CompressionCodec, Encoding};
use std::io;

/// Bytes of memory of all dictionaries of a file together.
const DICTIONARY_BUDGET: usize = 32 << 20;

/// How the pages of a file are written.
pub struct PageFormat {
    pub compressor: PageCompressor,
    /// Bytes that the dictionaries of the open chunks may still take.
    pub dictionary_budget: usize,
    /// Batches like the present one that the row group is expected to have from now on.
    pub batches_in_group: usize,
}

impl PageFormat {
    pub fn new(compressor: PageCompressor) -> Self {
        Self { compressor, dictionary_budget: DICTIONARY_BUDGET, batches_in_group: 1 }
    }
}

/// How the values of a page are written, before compression.
#[derive(Clone, Copy, PartialEq)]
pub enum ValueEncoding {
    Plain,
    /// Numbers of values in a dictionary.
    Dictionary,
}

/// One compression context, which is reused for all pages of a file.
pub enum PageCompressor {
    None,
    Snappy(Box<snap::raw::Encoder>),
    Zstd(zstd::bulk::Compressor<'static>),
}

impl ValueEncoding {
    /// As page headers and footer have it.
    pub fn in_parquet(self) -> Encoding {
        match self {
            Self::Plain => Encoding::PLAIN,
            Self::Dictionary => Encoding::RLE_DICTIONARY,
        }
    }
}

impl PageCompressor {
    /// By the name that the settings use; `Ok(None)` for an unknown name. The level is zstd's alone.
    pub fn named(name: &str, zstd_level: i32) -> io::Result<Option<Self>> {
        Ok(match name {
            "none" => Some(Self::None),
            "snappy" => Some(Self::Snappy(Box::new(snap::raw::Encoder::new()))),
            "zstd" => Some(Self::Zstd(zstd::bulk::Compressor::new(zstd_level)?)),
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
