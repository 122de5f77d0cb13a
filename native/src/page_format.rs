//! How the inside of a page is laid out and compressed; one compressor for all pages of a file.

use parquet::basic::{CompressionCodec, Encoding};
use std::io;

/// zstd's quickest level that still packs as well as a level should.
const ZSTD_LEVEL: i32 = 1;

pub struct PageFormat {
    pub layout: Layout,
    compressor: Compressor,
}

/// Where the lengths of values stand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Before all values of the page, packed: smaller, quicker to compress and to read, not known to every reader.
    DeltaLength,
    /// Each before its value.
    Plain,
}

enum Compressor {
    None,
    Snappy(Box<snap::raw::Encoder>),
    Zstd(zstd::bulk::Compressor<'static>),
}

impl Layout {
    pub fn encoding(self) -> Encoding {
        match self {
            Self::DeltaLength => Encoding::DELTA_LENGTH_BYTE_ARRAY,
            Self::Plain => Encoding::PLAIN,
        }
    }
}

impl PageFormat {
    /// By the names that settings use; the error says which there are.
    pub fn named(compression: &str, encoding: &str) -> Result<Self, String> {
        let compressor = match compression {
            "none" => Compressor::None,
            "snappy" => Compressor::Snappy(Box::new(snap::raw::Encoder::new())),
            "zstd" => {
                Compressor::Zstd(zstd::bulk::Compressor::new(ZSTD_LEVEL).map_err(|error| format!("zstd: {error}"))?)
            }
            _ => return Err(format!("compression is {compression:?}: it must be \"none\", \"snappy\" or \"zstd\"")),
        };
        let layout = match encoding {
            "delta_length" => Layout::DeltaLength,
            "plain" => Layout::Plain,
            _ => return Err(format!("encoding is {encoding:?}: it must be \"delta_length\" or \"plain\"")),
        };
        Ok(Self { layout, compressor })
    }

    pub fn codec(&self) -> CompressionCodec {
        match self.compressor {
            Compressor::None => CompressionCodec::UNCOMPRESSED,
            Compressor::Snappy(_) => CompressionCodec::SNAPPY,
            Compressor::Zstd(_) => CompressionCodec::ZSTD,
        }
    }

    pub fn compress(&mut self, page: &[u8]) -> io::Result<Vec<u8>> {
        match &mut self.compressor {
            Compressor::None => Ok(page.to_vec()),
            Compressor::Snappy(encoder) => Ok(encoder.compress_vec(page)?),
            Compressor::Zstd(compressor) => compressor.compress(page),
        }
    }
}
