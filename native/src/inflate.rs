//! gzip, bzip2 and zstd, recognised by their first bytes, every member of the file, with limits on expansion.

use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

/// As many bytes as the longest mark needs.
pub const MARK_BYTES: usize = 4;
/// Files below this size are never said to expand too far: repetitive logs do so honestly, and this much is no harm.
const RATIO_APPLIES_FROM: u64 = 256 << 20;
/// gzip with its header and trailer, largest window.
const GZIP_WINDOW_BITS: u8 = 15;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    Gzip,
    Bzip2,
    Zstd,
}

impl Codec {
    /// None: not compressed. No NDJSON file starts with any of these marks.
    pub fn detect(head: &[u8]) -> Option<Codec> {
        match head {
            [0x1f, 0x8b, ..] => Some(Codec::Gzip),
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Some(Codec::Bzip2),
            // A zstd frame, or a skippable one before it.
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

#[derive(Clone, Copy)]
pub struct Limits {
    /// Inflated bytes per compressed byte.
    pub expansion: u64,
    /// Inflated bytes of one file.
    pub inflated: u64,
}

enum Member {
    Gzip(flate2::Decompress),
    Bzip2(bzip2::Decompress),
    Zstd(Decoder<'static>),
}

pub struct Inflater {
    codec: Codec,
    limits: Limits,
    member: Option<Member>,
    members: u64,
    consumed: u64,
    produced: u64,
}

impl Inflater {
    pub fn new(codec: Codec, limits: Limits) -> Self {
        Self { codec, limits, member: None, members: 0, consumed: 0, produced: 0 }
    }

    pub fn codec(&self) -> Codec {
        self.codec
    }

    /// Inflates into `output` (all of it may be overwritten): the bytes taken from `input` and written to `output`.
    /// When `output` was filled there may be more to come without new input. The error is a sentence for people.
    pub fn inflate(&mut self, input: &[u8], output: &mut [u8]) -> Result<(usize, usize), String> {
        let (mut taken, mut written) = (0, 0);
        while written < output.len() {
            let rest = &input[taken..];
            if self.member.is_none() {
                if rest.is_empty() {
                    break;
                }
                if self.members > 0 && self.codec == Codec::Gzip && rest[0] == 0 {
                    // gzip files may be padded with zeros to a block size.
                    taken += 1;
                    self.consumed += 1;
                    continue;
                }
                self.member = Some(self.open()?);
            }
            let (read, wrote, ended) = self.step(rest, &mut output[written..])?;
            taken += read;
            written += wrote;
            self.consumed += read as u64;
            self.produced += wrote as u64;
            if ended {
                self.member = None;
                self.members += 1;
            } else if read == 0 && wrote == 0 {
                break;
            }
            self.check_limits()?;
        }
        Ok((taken, written))
    }

    /// No more input exists.
    pub fn finish(&self) -> Result<(), String> {
        if self.member.is_some() || self.members == 0 {
            return Err(format!("truncated {} at byte {}", self.codec.name(), self.consumed));
        }
        Ok(())
    }

    fn open(&self) -> Result<Member, String> {
        Ok(match self.codec {
            Codec::Gzip => Member::Gzip(flate2::Decompress::new_gzip(GZIP_WINDOW_BITS)),
            Codec::Bzip2 => Member::Bzip2(bzip2::Decompress::new(false)),
            Codec::Zstd => Member::Zstd(Decoder::new().map_err(|error| self.corrupt(&error.to_string()))?),
        })
    }

    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<(usize, usize, bool), String> {
        let outcome = match self.member.as_mut() {
            Some(Member::Gzip(member)) => gzip(member, input, output),
            Some(Member::Bzip2(member)) => bzip2(member, input, output),
            Some(Member::Zstd(member)) => zstd(member, input, output),
            None => Ok((0, 0, false)),
        };
        outcome.map_err(|why| self.corrupt(&why))
    }

    fn check_limits(&self) -> Result<(), String> {
        let (name, read, made) = (self.codec.name(), self.consumed, self.produced);
        if made > self.limits.inflated {
            let limit = self.limits.inflated;
            return Err(format!("expands too far: {name} inflates to more than {limit} bytes (at byte {read})"));
        }
        if made > RATIO_APPLIES_FROM && made / read.max(1) >= self.limits.expansion {
            let limit = self.limits.expansion;
            return Err(format!("expands too far: {read} bytes of {name} became {made}, more than {limit} times"));
        }
        Ok(())
    }

    fn corrupt(&self, why: &str) -> String {
        format!("corrupt {} at byte {}: {why}", self.codec.name(), self.consumed)
    }
}

fn gzip(member: &mut flate2::Decompress, input: &[u8], output: &mut [u8]) -> Result<(usize, usize, bool), String> {
    let (read, wrote) = (member.total_in(), member.total_out());
    let status = member
        .decompress(input, output, flate2::FlushDecompress::None)
        .map_err(|error| error.message().unwrap_or("invalid data").to_owned())?;
    let ended = status == flate2::Status::StreamEnd;
    Ok(((member.total_in() - read) as usize, (member.total_out() - wrote) as usize, ended))
}

fn bzip2(member: &mut bzip2::Decompress, input: &[u8], output: &mut [u8]) -> Result<(usize, usize, bool), String> {
    let (read, wrote) = (member.total_in(), member.total_out());
    let status = member.decompress(input, output).map_err(|error| error.to_string())?;
    let ended = status == bzip2::Status::StreamEnd;
    Ok(((member.total_in() - read) as usize, (member.total_out() - wrote) as usize, ended))
}

fn zstd(member: &mut Decoder<'static>, input: &[u8], output: &mut [u8]) -> Result<(usize, usize, bool), String> {
    let mut source = InBuffer::around(input);
    let mut target = OutBuffer::around(output);
    let hint = member.run(&mut source, &mut target).map_err(|error| error.to_string())?;
    Ok((source.pos(), target.pos(), hint == 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const LIMITS: Limits = Limits { expansion: 200, inflated: 1 << 30 };

    fn gzipped(text: &[u8]) -> Vec<u8> {
        let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        writer.write_all(text).unwrap();
        writer.finish().unwrap()
    }

    fn bzipped(text: &[u8]) -> Vec<u8> {
        let mut writer = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::default());
        writer.write_all(text).unwrap();
        writer.finish().unwrap()
    }

    fn inflate_in_steps(packed: &[u8], step: usize, room: usize) -> Result<Vec<u8>, String> {
        let mut inflater = Inflater::new(Codec::detect(packed).unwrap(), LIMITS);
        let mut text = Vec::new();
        for chunk in packed.chunks(step) {
            let mut at = 0;
            loop {
                let mut room = vec![0; room];
                let (taken, written) = inflater.inflate(&chunk[at..], &mut room)?;
                at += taken;
                text.extend_from_slice(&room[..written]);
                if at == chunk.len() && written < room.len() {
                    break;
                }
            }
        }
        inflater.finish().map(|()| text)
    }

    #[test]
    fn every_member_is_read_whatever_the_steps() {
        let pack_zstd = |text: &[u8]| zstd::encode_all(text, 1).unwrap();
        for pack in [&gzipped as &dyn Fn(&[u8]) -> Vec<u8>, &bzipped, &pack_zstd] {
            let packed = [pack(b"first\n"), pack(b""), pack(&[b'x'; 5000])].concat();
            for (step, room) in [(1, 1), (1, 4096), (7, 3), (100_000, 1), (100_000, 100_000)] {
                let text = inflate_in_steps(&packed, step, room).unwrap();
                assert_eq!(text, [&b"first\n"[..], &[b'x'; 5000]].concat());
            }
            let cut = inflate_in_steps(&packed[..packed.len() - 1], 64, 64).unwrap_err();
            assert!(cut.starts_with("truncated "), "{cut}");
            let garbage = inflate_in_steps(&[&packed[..], b"garbage"].concat(), 64, 64).unwrap_err();
            assert!(garbage.starts_with("corrupt "), "{garbage}");
        }
    }

    #[test]
    fn zeros_after_gzip_are_padding() {
        let packed = [gzipped(b"text"), vec![0; 1000]].concat();
        assert_eq!(inflate_in_steps(&packed, 10, 10).unwrap(), b"text");
    }

    #[test]
    fn a_bomb_is_recognised() {
        // Members of one file count together, so that the packed text is made only once.
        let packed = gzipped(&vec![0; 16 << 20]).repeat(17);
        let error = inflate_in_steps(&packed, 4096, 65536).unwrap_err();
        assert!(error.starts_with("expands too far"), "{error}");
    }
}
