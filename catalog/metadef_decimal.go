package catalog

import (
	"cmp"
	"strconv"
	"strings"
)

// decimal is a number as JSON writes it, without rounding: 0.digits times ten
// to the exponent. Digits neither start nor end with a zero; zero has none.
type decimal struct {
	negative bool
	digits   string
	exponent int
}

// mostExponent bounds exponents, so that sums of them cannot overflow; numbers
// beyond it are taken as having it.
const mostExponent = 1 << 30

// parseDecimal reads a number in JSON's notation.
func parseDecimal(text string) (decimal, bool) {
	rest, negative := strings.CutPrefix(text, "-")
	mantissa, exponentText := rest, ""
	if i := strings.IndexAny(rest, "eE"); i >= 0 {
		mantissa, exponentText = rest[:i], rest[i+1:]
		if strings.Trim(exponentText, "+-0123456789") != "" || strings.Trim(exponentText, "+-") == "" ||
			strings.LastIndexAny(exponentText, "+-") > 0 {
			return decimal{}, false
		}
	}
	whole, fraction, dotted := strings.Cut(mantissa, ".")
	if whole == "" || dotted && fraction == "" || strings.Trim(whole+fraction, "0123456789") != "" ||
		len(whole) > 1 && whole[0] == '0' {
		return decimal{}, false
	}
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return decimal{}, true
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
	return decimal{
		negative: negative,
		digits:   strings.TrimRight(digits, "0"),
		exponent: exponent + len(whole) - (len(whole+fraction) - len(digits)),
	}, true
}

// isInteger tells whether the number has no fraction: 1.0 has none.
func (d decimal) isInteger() bool { return d.digits == "" || len(d.digits) <= d.exponent }

// compare is negative when d is less than other, 0 when they are equal.
func (d decimal) compare(other decimal) int {
	sign := func(n decimal) int {
		switch {
		case n.digits == "":
			return 0
		case n.negative:
			return -1
		}
		return 1
	}
	if order := cmp.Compare(sign(d), sign(other)); order != 0 {
		return order
	}
	order := cmp.Compare(d.exponent, other.exponent)
	if order == 0 {
		order = strings.Compare(d.digits, other.digits)
	}
	return order * sign(d)
}

// String is the same for equal numbers only.
func (d decimal) String() string {
	if d.digits == "" {
		return "0"
	}
	text := "0." + d.digits + "e" + strconv.Itoa(d.exponent)
	if d.negative {
		return "-" + text
	}
	return text
}
