//! Whether a code image is all there: drivers take an address without a length, and read on where an image is cut short.

/// The head of an ELF file, which cubins and code objects are.
const ELF: &[u8] = b"\x7fELF";

/// The head of several code objects in one file.
const BUNDLE: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";

/// Whether `image` is an ELF file of 64 bits that ends behind its tables of sections and segments, or a bundle.
pub(super) fn is_whole(image: &[u8]) -> bool {
    image.starts_with(BUNDLE) || (image.starts_with(ELF) && elf_ends_within(image).unwrap_or(false))
}

fn elf_ends_within(image: &[u8]) -> Option<bool> {
    let number = |at: usize, bytes: usize| {
        let mut wide = [0; 8];
        wide[..bytes].copy_from_slice(image.get(at..at + bytes)?);
        Some(u64::from_le_bytes(wide))
    };
    const LITTLE_64: &[u8] = &[2, 1];
    if image.get(4..6)? != LITTLE_64 {
        return Some(false);
    }
    let table = |start, entry, count| number(start, 8)?.checked_add(number(entry, 2)? * number(count, 2)?);
    let (segments, sections) = (table(32, 54, 56)?, table(40, 58, 60)?);
    Some(segments.max(sections) <= image.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ELF file with a table of `count` sections of 64 bytes at its end.
    fn elf(count: u16) -> Vec<u8> {
        let mut image = vec![0; 64 + 64 * count as usize];
        image[..6].copy_from_slice(b"\x7fELF\x02\x01");
        image[40..48].copy_from_slice(&64_u64.to_le_bytes());
        image[58..60].copy_from_slice(&64_u16.to_le_bytes());
        image[60..62].copy_from_slice(&count.to_le_bytes());
        image
    }

    #[test]
    fn an_image_that_is_cut_short_is_told_from_a_whole_one() {
        assert!(is_whole(&elf(3)));
        assert!(!is_whole(&elf(3)[..255]));
        assert!(!is_whole(&elf(3)[..20]));
        assert!(!is_whole(b"") && !is_whole(b"\x7fELF") && !is_whole(b"not code at all"));
        let mut far = elf(3);
        far[40..48].fill(0xff);
        assert!(!is_whole(&far));
        let mut narrow = elf(3);
        narrow[4] = 1;
        assert!(!is_whole(&narrow));
        assert!(is_whole(b"__CLANG_OFFLOAD_BUNDLE__ and so on"));
    }
}
