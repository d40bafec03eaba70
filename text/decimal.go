package text

import (
	"cmp"
	"strconv"
	"strings"
)

// Decimal is a number as JSON writes it, without rounding: 0.digits times ten
// to the exponent. Digits neither start nor end with a zero; zero has none.
type Decimal struct {
	Negative bool
	Digits   string
	Exponent int
}

// mostExponent bounds exponents, so that sums of them cannot overflow; numbers
// beyond it are taken as having it.
const mostExponent = 1 << 30

// ParseDecimal reads a number in JSON's notation.
func ParseDecimal(text string) (Decimal, bool) {
	rest, negative := strings.CutPrefix(text, "-")
	mantissa, exponentText := rest, ""
	if i := strings.IndexAny(rest, "eE"); i >= 0 {
		mantissa, exponentText = rest[:i], rest[i+1:]
		if strings.Trim(exponentText, "+-0123456789") != "" || strings.Trim(exponentText, "+-") == "" ||
			strings.LastIndexAny(exponentText, "+-") > 0 {
			return Decimal{}, false
		}
	}
	whole, fraction, dotted := strings.Cut(mantissa, ".")
	if whole == "" || dotted && fraction == "" || strings.Trim(whole+fraction, "0123456789") != "" ||
		len(whole) > 1 && whole[0] == '0' {
		return Decimal{}, false
	}
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return Decimal{}, true
	}
	exponent, err := strconv.Atoi(exponentText)
	switch {
	case exponentText == "":
		exponent = 0
	case err != nil && exponentText[0] == '-':
		exponent = -mostExponent
	case err != nil:
		exponent = mostExponent
	}
	exponent = max(-mostExponent, min(mostExponent, exponent))
	return Decimal{
		Negative: negative,
		Digits:   strings.TrimRight(digits, "0"),
		Exponent: exponent + len(whole) - (len(whole+fraction) - len(digits)),
	}, true
}

// IsInteger tells whether the number has no fraction: 1.0 has none.
func (d Decimal) IsInteger() bool { return d.Digits == "" || len(d.Digits) <= d.Exponent }

// Compare is negative when d is less than other, 0 when they are equal.
func (d Decimal) Compare(other Decimal) int {
	sign := func(n Decimal) int {
		switch {
		case n.Digits == "":
			return 0
		case n.Negative:
			return -1
		}
		return 1
	}
	if order := cmp.Compare(sign(d), sign(other)); order != 0 {
		return order
	}
	order := cmp.Compare(d.Exponent, other.Exponent)
	if order == 0 {
		order = strings.Compare(d.Digits, other.Digits)
	}
	return order * sign(d)
}

// String is the same for equal numbers only.
func (d Decimal) String() string {
	if d.Digits == "" {
		return "0"
	}
	text := "0." + d.Digits + "e" + strconv.Itoa(d.Exponent)
	if d.Negative {
		return "-" + text
	}
	return text
}
