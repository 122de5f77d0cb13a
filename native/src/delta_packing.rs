//! Parquet's DELTA_BINARY_PACKED: the differences of 32-bit numbers, each block in as few bits as it needs.

/// Numbers in a block, and in each of its parts, as most writers have them.
const BLOCK: usize = 128;
const PARTS: usize = 4;
const PART: usize = BLOCK / PARTS;

/// Appends the numbers; there may be none.
pub fn pack_differences(numbers: &[i32], bytes: &mut Vec<u8>) {
    let mut previous = numbers.first().copied().unwrap_or(0);
    push_varint(bytes, BLOCK as u64);
    push_varint(bytes, PARTS as u64);
    push_varint(bytes, numbers.len() as u64);
    push_signed(bytes, previous);
    for block in numbers.get(1..).unwrap_or_default().chunks(BLOCK) {
        let mut differences = [0; BLOCK];
        for (difference, &number) in differences.iter_mut().zip(block) {
            *difference = number.wrapping_sub(previous);
            previous = number;
        }
        let least = differences[..block.len()].iter().copied().min().unwrap_or(0);
        push_signed(bytes, least);
        let mut above = [0; BLOCK];
        for (above, difference) in above.iter_mut().zip(&differences[..block.len()]) {
            *above = difference.wrapping_sub(least) as u32;
        }
        let parts = above.as_chunks::<PART>().0;
        let widths =
            parts.iter().map(|part| u32::BITS - part.iter().fold(0, |all, number| all | number).leading_zeros());
        bytes.extend(widths.clone().map(|width| width as u8));
        for (part, width) in parts.iter().zip(widths) {
            pack(part, width, bytes);
        }
    }
}

/// Each number in `width` bits, the first one lowest; of no bits nothing is written.
fn pack(numbers: &[u32; PART], width: u32, bytes: &mut Vec<u8>) {
    if width == 0 {
        return;
    }
    let (mut word, mut filled) = (0_u64, 0);
    for &number in numbers {
        word |= u64::from(number) << filled;
        filled += width;
        if filled >= u32::BITS {
            bytes.extend_from_slice(&(word as u32).to_le_bytes());
            word >>= u32::BITS;
            filled -= u32::BITS;
        }
    }
}

/// Small numbers of either sign in few bytes.
fn push_signed(bytes: &mut Vec<u8>, value: i32) {
    push_varint(bytes, u64::from((value << 1 ^ value >> 31) as u32));
}

/// Seven bits in each byte, the lowest first.
pub fn push_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(numbers: &[i32]) -> Vec<u8> {
        let mut bytes = Vec::new();
        pack_differences(numbers, &mut bytes);
        bytes
    }

    // Both from the Parquet format's Encodings.md, with its blocks of 8 made blocks of 128.

    #[test]
    fn equal_differences_take_no_bits() {
        assert_eq!(packed(&[1, 2, 3, 4, 5]), [128, 1, 4, 5, 2, 2, 0, 0, 0, 0]);
    }

    #[test]
    fn others_take_what_they_need() {
        // Differences -2 -2 -2 1 1 1 1, above the least 0 0 0 3 3 3 3.
        let head = [128, 1, 4, 8, 14, 3, 2, 0, 0, 0, 0b1100_0000, 0b0011_1111];
        assert_eq!(packed(&[7, 5, 3, 1, 2, 3, 4, 5]), [&head[..], &[0; 6]].concat());
    }

    #[test]
    fn none_is_a_head_alone() {
        assert_eq!(packed(&[]), [128, 1, 4, 0, 0]);
    }

    #[test]
    fn the_largest_difference_fits() {
        assert_eq!(packed(&[0, i32::MAX, 0]).len(), 5 + 5 + 4 + 4 * PART);
    }
}
