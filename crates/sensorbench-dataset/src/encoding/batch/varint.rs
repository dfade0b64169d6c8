//! Numbers in as few bytes as they need: seven bits a byte, least first, the high bit telling that more follow (LEB128).

use super::error::BatchError;

pub(super) fn append_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

#[inline]
pub(super) fn read_varint(bytes: &mut &[u8]) -> Result<u64, BatchError> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first().ok_or(BatchError::Malformed)?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(BatchError::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_back() {
        for number in [0, 1, 0x7f, 0x80, 0x3fff, 0x4000, u64::MAX] {
            let mut bytes = Vec::new();
            append_varint(&mut bytes, number);
            let mut rest = bytes.as_slice();
            assert_eq!(read_varint(&mut rest), Ok(number));
            assert!(rest.is_empty());
        }
        assert_eq!(read_varint(&mut &[0xff; 11][..]), Err(BatchError::Malformed));
        assert_eq!(read_varint(&mut &[0x80][..]), Err(BatchError::Malformed));
    }
}
