package text

import "math/bits"

const upperHex = "0123456789ABCDEF"

// AppendQuoted appends a JSON string. It escapes only the quote, the backslash
// and characters below U+0020; bytes that are not UTF-8 stay unchanged.
func AppendQuoted(to []byte, text string) []byte {
	to = append(to, '"')
	start := 0
	for i := plainUntil(text, 0); i < len(text); i = plainUntil(text, i+1) {
		c := text[i]
		to = append(to, text[start:i]...)
		start = i + 1
		switch c {
		case '\t':
			to = append(to, `\t`...)
		case '\r':
			to = append(to, `\r`...)
		case '\n':
			to = append(to, `\n`...)
		case '\\', '"':
			to = append(to, '\\', c)
		default:
			to = append(to, '\\', 'u', '0', '0', upperHex[c>>4], upperHex[c&0xf])
		}
	}
	return append(append(to, text[start:]...), '"')
}

// plainUntil returns the index of the first byte from i on that must be
// escaped, or the length of the string. It checks eight bytes at a time.
func plainUntil(text string, i int) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(text); i += 8 {
		part := text[i : i+8]
		x := uint64(part[0]) | uint64(part[1])<<8 | uint64(part[2])<<16 | uint64(part[3])<<24 |
			uint64(part[4])<<32 | uint64(part[5])<<40 | uint64(part[6])<<48 | uint64(part[7])<<56
		quote, slash := x^ones*'"', x^ones*'\\'
		// The high bit of a byte is set if the byte is less than 0x20, or 0
		// after the exclusive or. It can also be set in bytes after the first
		// such byte.
		if escaped := ((x-ones*0x20)&^x | (quote-ones)&^quote | (slash-ones)&^slash) & highs; escaped != 0 {
			return i + bits.TrailingZeros64(escaped)/8
		}
	}
	for ; i < len(text); i++ {
		if c := text[i]; c < 0x20 || c == '\\' || c == '"' {
			return i
		}
	}
	return len(text)
}
