//! Parquet's encoding DELTA_LENGTH_BYTE_ARRAY: the lengths of all values of a page, delta-encoded and bit-packed, then
//! the bytes of all values.
//!
//! Source: the Parquet format, Encodings.md, "Delta Encoding" and "Delta-length byte array".

use crate::column_values::{LENGTH_BYTES, SHORT_VALUE_BYTES, split_first_value};
use crate::varint::push_varint;

/// Lengths of a block, which has its own smallest difference. A multiple of 128.
const BLOCK: usize = 128;
/// Lengths that are packed with the same number of bits. A multiple of 32.
const MINIBLOCK: usize = 32;
const MINIBLOCKS: usize = BLOCK / MINIBLOCK;

/// Appends the values of `plain`, each after its length, in this encoding.
pub fn encode(plain: &[u8], page: &mut Vec<u8>) {
    let mut lengths = Vec::new();
    let mut rest = plain;
    while let Some((value, next)) = split_first_value(rest) {
        lengths.push(value.len() as i64);
        rest = next;
    }
    push_lengths(&lengths, page);
    push_values(plain, page);
}

/// The bytes of all values. Short ones are copied with a copy of a fixed size, which needs no function call.
fn push_values(plain: &[u8], page: &mut Vec<u8>) {
    let mut end = page.len();
    page.resize(end + plain.len(), 0);
    let mut rest = plain;
    while let Some((value, next)) = split_first_value(rest) {
        match rest[LENGTH_BYTES..].first_chunk::<SHORT_VALUE_BYTES>() {
            Some(chunk) if value.len() <= SHORT_VALUE_BYTES => {
                page[end..][..SHORT_VALUE_BYTES].copy_from_slice(chunk);
            }
            _ => page[end..][..value.len()].copy_from_slice(value),
        }
        end += value.len();
        rest = next;
    }
    page.truncate(end);
}

/// DELTA_BINARY_PACKED: a header with the first length, then blocks of the differences from one length to the next.
fn push_lengths(lengths: &[i64], page: &mut Vec<u8>) {
    push_varint(page, BLOCK);
    push_varint(page, MINIBLOCKS);
    push_varint(page, lengths.len());
    push_zigzag(page, lengths.first().copied().unwrap_or(0));
    let mut differences = [0; BLOCK];
    for (start, block) in (1..lengths.len()).step_by(BLOCK).map(|start| (start, &lengths[start..])) {
        let count = block.len().min(BLOCK);
        for (difference, pair) in differences.iter_mut().zip(lengths[start - 1..].windows(2).take(count)) {
            *difference = pair[1] - pair[0];
        }
        push_block(&mut differences[..count], page);
    }
}

/// The smallest difference, the bits of each miniblock, the miniblocks. Those without a length have no bits; one that is
/// not full is filled with zeros.
fn push_block(differences: &mut [i64], page: &mut Vec<u8>) {
    let least = differences.iter().copied().min().expect("a block has a difference");
    push_zigzag(page, least);
    differences.iter_mut().for_each(|difference| *difference -= least);
    let widths_at = page.len();
    page.extend_from_slice(&[0; MINIBLOCKS]);
    for (miniblock, differences) in differences.chunks(MINIBLOCK).enumerate() {
        let bits = differences.iter().fold(0, |bits, difference| bits | difference);
        let width = i64::BITS - bits.leading_zeros();
        page[widths_at + miniblock] = width as u8;
        pack(differences, width, page);
    }
}

/// Packs the numbers, and zeros up to a whole miniblock, into `width` bits each, the least significant bits first.
fn pack(numbers: &[i64], width: u32, page: &mut Vec<u8>) {
    let end = page.len() + MINIBLOCK / 8 * width as usize;
    // Lengths are below 2 GiB, so a number has at most 32 bits, and there are at most 7 from before.
    let (mut bits, mut used) = (0, 0);
    for &number in numbers {
        bits |= (number as u64) << used;
        used += width;
        while used >= 8 {
            page.push(bits as u8);
            bits >>= 8;
            used -= 8;
        }
    }
    if used > 0 {
        page.push(bits as u8);
    }
    page.resize(end, 0);
}

fn push_zigzag(bytes: &mut Vec<u8>, value: i64) {
    push_varint(bytes, ((value << 1) ^ (value >> 63)) as usize);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(values: &[&[u8]]) -> Vec<u8> {
        values.iter().flat_map(|value| [&(value.len() as u32).to_le_bytes(), *value].concat()).collect()
    }

    fn encoded(values: &[&[u8]]) -> Vec<u8> {
        let mut page = Vec::new();
        encode(&plain(values), &mut page);
        page
    }

    #[test]
    fn a_page_is_as_the_format_describes_it() {
        // The header is 128 lengths of a block, 4 miniblocks, the number of lengths, the first one (zigzag).
        assert_eq!(encoded(&[]), [0x80, 1, 4, 0, 0]);
        assert_eq!(encoded(&[b"abc"]), *b"\x80\x01\x04\x01\x06abc");
        // Then the block: differences -2 and 1, the least is -2 (zigzag 3), two bits of the first miniblock: 0 and 3.
        assert_eq!(
            encoded(&[b"abc", b"d", b"ef"]),
            *b"\x80\x01\x04\x03\x06\x03\x02\x00\x00\x00\x0c\x00\x00\x00\x00\x00\x00\x00abcdef"
        );
    }

    #[test]
    fn equal_lengths_take_no_bits() {
        let values = vec![&b"12345678"[..]; 1 + 2 * BLOCK];
        let page = encoded(&values);
        // Two blocks of a smallest difference and four widths.
        assert_eq!(page.len() - values.concat().len(), 6 + 2 * 5);
    }
}
