//! Decompression of gzip, bzip2 and zstd files with all their members, and limits against decompression bombs.

use crate::decompressor::{Codec, Decompressor};

/// Bytes of the longest magic number.
pub const MAGIC_BYTES: usize = 4;
/// The ratio is not limited up to this many inflated bytes: repetitive logs can have any ratio, and a file of this size
/// does no harm.
const MIN_BYTES_FOR_RATIO: u64 = 256 << 20;
/// A file must inflate to at least half of its size. Further compressed bytes are members, frames or blocks that are
/// nearly empty, each of which costs as much time as kilobytes of text. This number of such bytes is accepted.
const MAX_EMPTY_BYTES: u64 = 4 << 20;
/// Maximum compressed bytes for each inflated byte, beyond `MAX_EMPTY_BYTES`.
const MAX_SHRINKING: u64 = 2;
/// A bzip2 stream begins with 3.6 MB of memory, which costs as much time as kilobytes of text. This number of streams
/// may be small; further ones must inflate to `MIN_STREAM_BYTES` on average.
const MAX_SMALL_STREAMS: u64 = 10_000;
const MIN_STREAM_BYTES: u64 = 1 << 10;

/// Bytes with an error among the first ones are not a member: the error is then reported at their start.
const HEADER_BYTES: u64 = 10;

#[derive(Clone, Copy)]
pub struct InflateLimits {
    /// Maximum inflated bytes per compressed byte, checked above `MIN_BYTES_FOR_RATIO` inflated bytes.
    pub max_expansion: u64,
    /// Maximum inflated bytes of one file.
    pub max_inflated_bytes: u64,
}

pub struct Inflater {
    codec: Codec,
    limits: InflateLimits,
    /// None between two members.
    decompressor: Option<Decompressor>,
    /// The decompressor of the last member, if it can begin another member.
    spare: Option<Decompressor>,
    finished_members: u64,
    /// Where the current member begins, in compressed bytes.
    member_start: u64,
    compressed_bytes: u64,
    inflated_bytes: u64,
}

impl Inflater {
    pub fn new(codec: Codec, limits: InflateLimits) -> Self {
        Self {
            codec,
            limits,
            decompressor: None,
            spare: None,
            finished_members: 0,
            member_start: 0,
            compressed_bytes: 0,
            inflated_bytes: 0,
        }
    }

    pub fn codec(&self) -> Codec {
        self.codec
    }

    pub fn inflated_bytes(&self) -> u64 {
        self.inflated_bytes
    }

    /// Inflates `input` into `output`, which may be overwritten completely; returns the bytes read and written.
    ///
    /// If `output` is full, more output may follow without more input. The error is a message for the operator and final.
    pub fn inflate(&mut self, input: &[u8], output: &mut [u8]) -> Result<(usize, usize), String> {
        let (mut read, mut written) = (0, 0);
        while written < output.len() {
            let rest = &input[read..];
            if self.decompressor.is_none() {
                if rest.is_empty() {
                    break;
                }
                if self.finished_members > 0 && self.codec != Codec::Zstd && matches!(rest[0], 0 | b'\r' | b'\n') {
                    // Zeros up to a block size, or an appended end of a line: gzip(1) and bzip2(1) ignore them too.
                    read += 1;
                    self.compressed_bytes += 1;
                    self.check_limits()?;
                    continue;
                }
                self.member_start = self.compressed_bytes;
            }
            let step = self.decompressor()?.step(rest, &mut output[written..]);
            self.compressed_bytes += step.read as u64;
            if let Some(cause) = step.error {
                let is_member = self.compressed_bytes - self.member_start > HEADER_BYTES;
                self.compressed_bytes = if is_member { self.compressed_bytes } else { self.member_start };
                return Err(self.corrupt(&cause));
            }
            read += step.read;
            written += step.written;
            self.inflated_bytes += step.written as u64;
            if step.member_ended {
                self.end_member();
            } else if step.read == 0 && step.written == 0 {
                break;
            }
            self.check_limits()?;
        }
        Ok((read, written))
    }

    /// Ends the input: the file has no more bytes. An error if it is truncated.
    pub fn finish(&self) -> Result<(), String> {
        if self.decompressor.is_some() || self.finished_members == 0 {
            return Err(format!("truncated {} at byte {}", self.codec.name(), self.compressed_bytes));
        }
        Ok(())
    }

    fn end_member(&mut self) {
        self.finished_members += 1;
        self.spare = self.decompressor.take().and_then(Decompressor::renewed);
    }

    /// The decompressor of the current member; begins a member if there is none.
    fn decompressor(&mut self) -> Result<&mut Decompressor, String> {
        let current = match self.decompressor.take().or_else(|| self.spare.take()) {
            Some(current) => current,
            None => Decompressor::new(self.codec).map_err(|cause| self.corrupt(&cause))?,
        };
        Ok(self.decompressor.insert(current))
    }

    fn check_limits(&self) -> Result<(), String> {
        let (codec, compressed, inflated) = (self.codec.name(), self.compressed_bytes, self.inflated_bytes);
        let InflateLimits { max_expansion, max_inflated_bytes } = self.limits;
        if inflated > max_inflated_bytes {
            return Err(format!(
                "expands too far: {codec} inflates to more than {max_inflated_bytes} bytes (at byte {compressed})"
            ));
        }
        let streams = if self.codec == Codec::Bzip2 { self.finished_members } else { 0 };
        if compressed > MAX_EMPTY_BYTES + MAX_SHRINKING * inflated
            || streams > MAX_SMALL_STREAMS + inflated / MIN_STREAM_BYTES
        {
            return Err(format!(
                "holds too little: {compressed} bytes of {codec} inflate to {inflated} bytes; its members are empty or \
                 nearly so"
            ));
        }
        if inflated > MIN_BYTES_FOR_RATIO && inflated / compressed.max(1) >= max_expansion {
            return Err(format!(
                "expands too far: {compressed} bytes of {codec} inflate to {inflated} bytes, \
                 {max_expansion} times as many or more"
            ));
        }
        Ok(())
    }

    fn corrupt(&self, cause: &str) -> String {
        format!("corrupt {} at byte {}: {cause}", self.codec.name(), self.compressed_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const LIMITS: InflateLimits = InflateLimits { max_expansion: 200, max_inflated_bytes: 1 << 30 };

    fn pack_gzip(text: &[u8]) -> Vec<u8> {
        let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        writer.write_all(text).unwrap();
        writer.finish().unwrap()
    }

    fn pack_bzip2(text: &[u8]) -> Vec<u8> {
        let mut writer = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::default());
        writer.write_all(text).unwrap();
        writer.finish().unwrap()
    }

    fn inflate_in_chunks(packed: &[u8], input_bytes: usize, output_bytes: usize) -> Result<Vec<u8>, String> {
        let mut inflater = Inflater::new(Codec::detect(packed).unwrap(), LIMITS);
        let mut text = Vec::new();
        for chunk in packed.chunks(input_bytes) {
            let mut position = 0;
            loop {
                let mut output = vec![0; output_bytes];
                let (read, written) = inflater.inflate(&chunk[position..], &mut output)?;
                position += read;
                text.extend_from_slice(&output[..written]);
                if position == chunk.len() && written < output.len() {
                    break;
                }
            }
        }
        inflater.finish().map(|()| text)
    }

    #[test]
    fn every_member_is_inflated_for_any_size_of_input_and_output() {
        let pack_zstd = |text: &[u8]| zstd::encode_all(text, 1).unwrap();
        for pack in [&pack_gzip as &dyn Fn(&[u8]) -> Vec<u8>, &pack_bzip2, &pack_zstd] {
            let packed = [pack(b"first\n"), pack(b""), pack(&[b'x'; 5000])].concat();
            for (input_bytes, output_bytes) in [(1, 1), (1, 4096), (7, 3), (100_000, 1), (100_000, 100_000)] {
                let text = inflate_in_chunks(&packed, input_bytes, output_bytes).unwrap();
                assert_eq!(text, [&b"first\n"[..], &[b'x'; 5000]].concat());
            }
            let truncated = inflate_in_chunks(&packed[..packed.len() - 1], 64, 64).unwrap_err();
            assert!(truncated.starts_with("truncated "), "{truncated}");
            for input_bytes in [1, 64, 100_000] {
                let corrupt = inflate_in_chunks(&[&packed[..], b"garbage"].concat(), input_bytes, 64).unwrap_err();
                assert!(corrupt.contains(&format!(" at byte {}: ", packed.len())), "{input_bytes}: {corrupt}");
            }
        }
    }

    #[test]
    fn zeros_and_ends_of_lines_are_padding() {
        for (packed, padding) in [(pack_gzip(b"text"), &[0; 1000][..]), (pack_bzip2(b"text"), b"\r\n")] {
            assert_eq!(inflate_in_chunks(&[&packed[..], padding].concat(), 10, 10).unwrap(), b"text");
        }
    }

    #[test]
    fn a_file_of_empty_members_is_an_error() {
        let frame = zstd::encode_all(&b""[..], 1).unwrap();
        let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0][..], &frame].concat();
        for member in [pack_gzip(b""), pack_gzip(b"\n"), frame, skippable] {
            let count = MAX_EMPTY_BYTES as usize / member.len();
            assert!(inflate_in_chunks(&member.repeat(count / 2), 65536, 65536).is_ok());
            let error = inflate_in_chunks(&member.repeat(count + count / 4 + 1), 65536, 65536).unwrap_err();
            assert!(error.starts_with("holds too little"), "{error}");
        }
    }

    #[test]
    fn more_padding_than_content_is_an_error() {
        let padded = [pack_gzip(b"{}"), vec![0; MAX_EMPTY_BYTES as usize]].concat();
        let error = inflate_in_chunks(&padded, 65536, 65536).unwrap_err();
        assert!(error.starts_with("holds too little"), "{error}");
    }

    #[test]
    fn a_file_of_small_bzip2_streams_is_an_error() {
        let small = pack_bzip2(b"{\"a\":1}\n");
        assert!(inflate_in_chunks(&small.repeat(100), 65536, 65536).is_ok());
        let error = inflate_in_chunks(&small.repeat(MAX_SMALL_STREAMS as usize + 100), 65536, 65536).unwrap_err();
        assert!(error.starts_with("holds too little"), "{error}");
    }

    #[test]
    fn a_decompression_bomb_is_an_error() {
        // The limits apply to the sum over all members, so one member, compressed once, can be repeated.
        let packed = pack_gzip(&vec![0; 16 << 20]).repeat(17);
        let error = inflate_in_chunks(&packed, 4096, 65536).unwrap_err();
        assert!(error.starts_with("expands too far"), "{error}");
    }
}
