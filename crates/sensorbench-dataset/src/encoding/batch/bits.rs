//! Bits in bytes, the high bit of each byte first. Bits are written and read many at a time, through 64-bit words.

/// Appends bits to bytes.
pub(super) struct BitWriter<'a> {
    bytes: &'a mut Vec<u8>,
    /// Bits that are not among the bytes yet, from the high end on; the rest is zero.
    word: u64,
    /// Number of bits for which there is room in the word: 1 to 64.
    room: u32,
}

impl<'a> BitWriter<'a> {
    pub(super) fn new(bytes: &'a mut Vec<u8>) -> Self {
        Self { bytes, word: 0, room: 64 }
    }

    /// Appends the lowest `width` bits of `bits`, whose other bits are zero; 1 to 64 of them.
    #[inline]
    pub(super) fn write(&mut self, bits: u64, width: u32) {
        debug_assert!((1..=64).contains(&width) && bits.unbounded_shr(width) == 0, "{bits:x} in {width} bits");
        if width < self.room {
            self.room -= width;
            self.word |= bits << self.room;
        } else {
            let left_over = width - self.room;
            self.bytes.extend((self.word | bits >> left_over).to_be_bytes());
            self.room = 64 - left_over;
            self.word = bits.unbounded_shl(self.room);
        }
    }

    /// Fills the last byte with zeros.
    pub(super) fn finish(self) {
        let whole_bytes = (64 - self.room).div_ceil(8) as usize;
        self.bytes.extend(&self.word.to_be_bytes()[..whole_bytes]);
    }
}

/// Reads bits from bytes. Behind the last byte there are only zeros.
pub(super) struct BitReader<'a> {
    bytes: &'a [u8],
    /// Number of bits that were read.
    position: usize,
}

/// A window of 64 bits at any position touches this many bytes.
const WINDOW_BYTES: usize = 9;

impl<'a> BitReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    /// The next 64 bits, the next one highest. They stay unread.
    #[inline]
    pub(super) fn window(&self) -> u64 {
        let ahead = self.bytes.get(self.position / 8..).unwrap_or_default();
        let window_bytes = ahead.first_chunk::<WINDOW_BYTES>().copied().unwrap_or_else(|| with_zeros_behind(ahead));
        let [word @ .., last] = window_bytes;
        let offset = self.position % 8;
        u64::from_be_bytes(word) << offset | u64::from(last) >> (8 - offset)
    }

    /// Takes the next `width` bits as read.
    #[inline]
    pub(super) fn skip(&mut self, width: u32) {
        self.position += width as usize;
    }

    /// Number of bits that are still to be read; None when more were read than there are.
    #[inline]
    pub(super) fn left(&self) -> Option<usize> {
        (self.bytes.len() * 8).checked_sub(self.position)
    }

    /// Whether all was read but the zeros that fill the last byte.
    pub(super) fn is_finished(&self) -> bool {
        self.left().is_some_and(|left| left < 8) && self.window() == 0
    }
}

#[cold]
fn with_zeros_behind(ahead: &[u8]) -> [u8; WINDOW_BYTES] {
    let mut window_bytes = [0; WINDOW_BYTES];
    window_bytes[..ahead.len()].copy_from_slice(ahead);
    window_bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_of_every_width_read_back_at_every_offset() {
        for offset in 1..=64 {
            let mut bytes = Vec::new();
            let mut writer = BitWriter::new(&mut bytes);
            writer.write(0, offset);
            (1..=64).for_each(|width| writer.write(u64::MAX.unbounded_shr(64 - width), width));
            writer.finish();
            let bits = offset as usize + (1..=64).sum::<usize>();
            assert_eq!(bytes.len(), bits.div_ceil(8));

            let mut reader = BitReader::new(&bytes);
            assert_eq!(reader.window().leading_zeros(), offset);
            reader.skip(offset);
            for width in 1..=64 {
                assert_eq!(reader.window().leading_ones().min(width), width);
                reader.skip(width);
            }
            assert!(reader.is_finished());
        }
    }

    #[test]
    fn bits_come_high_first() {
        let mut bytes = Vec::new();
        let mut writer = BitWriter::new(&mut bytes);
        [(0b101, 3), (0b0110_0111, 8), (1, 2)].iter().for_each(|(bits, width)| writer.write(*bits, *width));
        writer.finish();
        assert_eq!(bytes, [0b1010_1100, 0b1110_1000]);
    }

    #[test]
    fn the_end_is_where_fewer_than_eight_zeros_are_left() {
        let mut reader = BitReader::new(&[0b1110_0000, 0]);
        assert!(!reader.is_finished());
        reader.skip(8);
        assert!(!reader.is_finished(), "a whole byte is left");
        reader.skip(1);
        assert!(reader.is_finished());
        reader.skip(7);
        assert!(reader.is_finished());
        reader.skip(1);
        assert_eq!((reader.left(), reader.window(), reader.is_finished()), (None, 0, false));
        let mut unfilled = BitReader::new(&[0b0000_0100]);
        unfilled.skip(5);
        assert!(!unfilled.is_finished(), "a bit is set");
    }
}
