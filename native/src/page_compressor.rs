//! How pages are compressed: one context for all pages of a file.

use parquet::basic::CompressionCodec;
use std::io;

/// zstd's quickest level that still packs as well as a level should.
const ZSTD_LEVEL: i32 = 1;

pub enum Codec {
    None,
    Snappy(Box<snap::raw::Encoder>),
    Zstd(zstd::bulk::Compressor<'static>),
}

impl Codec {
    /// By the name that settings use; None: there is no such codec.
    pub fn named(name: &str) -> io::Result<Option<Self>> {
        Ok(match name {
            "none" => Some(Self::None),
            "snappy" => Some(Self::Snappy(Box::new(snap::raw::Encoder::new()))),
            "zstd" => Some(Self::Zstd(zstd::bulk::Compressor::new(ZSTD_LEVEL)?)),
            _ => None,
        })
    }

    /// What a footer calls it.
    pub fn kind(&self) -> CompressionCodec {
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
