package text

const upperHex = "0123456789ABCDEF"

// AppendQuoted appends a text as a string of JSON. Only the quote, the
// backslash and the control characters are escaped; bytes that are not UTF-8
// stay as they are.
func AppendQuoted(to []byte, text string) []byte {
	to = append(to, '"')
	start := 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c >= 0x20 && c != '\\' && c != '"' {
			continue
		}
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
