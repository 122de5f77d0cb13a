//! The compressions of a file, and one member of it: a gzip member, a bzip2 stream or a zstd frame.

use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

/// The largest window of DEFLATE, 2^15 bytes.
const GZIP_WINDOW_BITS: u8 = 15;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    Gzip,
    Bzip2,
    Zstd,
}

impl Codec {
    /// The codec of a file by its first bytes (`MAGIC_BYTES` are enough); None if it is not compressed.
    ///
    /// No row starts with one of these magic numbers.
    pub fn detect(head: &[u8]) -> Option<Codec> {
        match head {
            [0x1f, 0x8b, ..] => Some(Codec::Gzip),
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Some(Codec::Bzip2),
            // A zstd frame, or a skippable frame before it.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Codec::Zstd),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Codec::Gzip => "gzip",
            Codec::Bzip2 => "bzip2",
            Codec::Zstd => "zstd",
        }
    }
}

pub enum Decompressor {
    Gzip(flate2::Decompress),
    Bzip2(bzip2::Decompress),
    Zstd(Decoder<'static>),
}

/// What one call of a decompressor did.
pub struct Step {
    pub read: usize,
    pub written: usize,
    pub member_ended: bool,
    /// Why the data is corrupt. The error is after the bytes that were read; with zstd, in one of the next blocks.
    pub error: Option<String>,
}

impl Decompressor {
    pub fn new(codec: Codec) -> Result<Self, String> {
        Ok(match codec {
            Codec::Gzip => Self::Gzip(flate2::Decompress::new_gzip(GZIP_WINDOW_BITS)),
            Codec::Bzip2 => Self::Bzip2(bzip2::Decompress::new(false)),
            Codec::Zstd => Self::Zstd(Decoder::new().map_err(|error| error.to_string())?),
        })
    }

    /// For the next member; None if a new one is needed. A new zstd decoder costs as much time as kilobytes of text.
    pub fn renewed(self) -> Option<Self> {
        match self {
            Self::Zstd(mut decoder) => decoder.reinit().is_ok().then_some(Self::Zstd(decoder)),
            Self::Gzip(_) | Self::Bzip2(_) => None,
        }
    }

    pub fn step(&mut self, input: &[u8], output: &mut [u8]) -> Step {
        match self {
            Self::Gzip(decompressor) => gzip_step(decompressor, input, output),
            Self::Bzip2(decompressor) => bzip2_step(decompressor, input, output),
            Self::Zstd(decompressor) => zstd_step(decompressor, input, output),
        }
    }
}

fn gzip_step(decompressor: &mut flate2::Decompress, input: &[u8], output: &mut [u8]) -> Step {
    let (read_before, written_before) = (decompressor.total_in(), decompressor.total_out());
    let outcome = decompressor.decompress(input, output, flate2::FlushDecompress::None);
    Step {
        read: (decompressor.total_in() - read_before) as usize,
        written: (decompressor.total_out() - written_before) as usize,
        member_ended: matches!(outcome, Ok(flate2::Status::StreamEnd)),
        error: outcome.err().map(|error| gzip_message(error.message()).to_owned()),
    }
}

/// zlib-rs replaces its message about an invalid code by a message about itself.
fn gzip_message(message: Option<&str>) -> &str {
    message.filter(|message| *message != "repeated call with bad state").unwrap_or("invalid data")
}

fn bzip2_step(decompressor: &mut bzip2::Decompress, input: &[u8], output: &mut [u8]) -> Step {
    let (read_before, written_before) = (decompressor.total_in(), decompressor.total_out());
    let outcome = decompressor.decompress(input, output);
    Step {
        read: (decompressor.total_in() - read_before) as usize,
        written: (decompressor.total_out() - written_before) as usize,
        member_ended: matches!(outcome, Ok(bzip2::Status::StreamEnd)),
        error: outcome.err().map(|error| error.to_string()),
    }
}

fn zstd_step(decompressor: &mut Decoder<'static>, input: &[u8], output: &mut [u8]) -> Step {
    let mut source = InBuffer::around(input);
    let mut target = OutBuffer::around(output);
    let outcome = decompressor.run(&mut source, &mut target);
    Step {
        read: source.pos(),
        written: target.pos(),
        member_ended: matches!(outcome, Ok(0)),
        error: outcome.err().map(|error| zstd_message(&error.to_string()).to_owned()),
    }
}

/// libzstd's messages about a too large window and about a dictionary name no remedy.
fn zstd_message(message: &str) -> &str {
    match message {
        "Frame requires too much memory for decoding" => {
            "its window is larger than 128 MiB: compress it with zstd --long=27 or less"
        }
        "Dictionary mismatch" => "it needs a dictionary: compress it without one",
        other => other,
    }
}
