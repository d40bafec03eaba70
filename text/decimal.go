package text

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
)

// Decimal is a JSON number without rounding: 0.digits times ten to the
// exponent. Digits neither start nor end with a zero; zero has no digits.
type Decimal struct {
	Negative bool
	Digits   string
	Exponent int
}

// maxExponent bounds exponents, so that their sums cannot overflow. An exponent
// outside of [-maxExponent, maxExponent] becomes the nearer end.
const maxExponent = 1 << 30

var number = regexp.MustCompile(`^(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$`)

// ParseDecimal parses a number in JSON's notation. It returns false for any
// other string.
func ParseDecimal(input string) (Decimal, bool) {
	parts := number.FindStringSubmatch(input)
	if parts == nil {
		return Decimal{}, false
	}
	sign, whole, fraction := parts[1], parts[2], parts[3]
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return Decimal{}, true
	}
	exponent, _ := strconv.Atoi(cmp.Or(parts[4], "0")) // on overflow the largest or smallest integer
	exponent = max(-maxExponent, min(maxExponent, exponent))
	return Decimal{sign == "-", strings.TrimRight(digits, "0"), exponent + len(digits) - len(fraction)}, true
}

// IsInteger reports whether the number has no fraction: 1.0 has none.
func (d Decimal) IsInteger() bool { return d.Digits == "" || len(d.Digits) <= d.Exponent }

// Compare returns a negative number if d is less than other, 0 if they are
// equal, and a positive number if d is greater.
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

// String returns a canonical form. Equal numbers have the same string, and
// different numbers have different strings.
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
