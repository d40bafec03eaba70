package resource

import (
	"fmt"
	"strings"

	"github.com/cadastre-dev/cadastre/text"
)

// Bounds of numbers that are compared as such: more digits, or larger
// exponents, are text.
const (
	maxNumberDigits   = 64
	maxNumberExponent = 4999
)

// NumberKey returns a text that compares, by code point, as the number compares
// that a value is: exactly, without rounding, on every database. False means
// that the value is no number. A number is written as in JSON; `007` and `+7`
// are text.
func NumberKey(value string) (string, bool) {
	number, ok := text.ParseDecimal(value)
	switch {
	case !ok || len(number.Digits) > maxNumberDigits:
		return "", false
	case number.Digits == "":
		return "1", true
	case number.Exponent > maxNumberExponent || number.Exponent < -maxNumberExponent:
		return "", false
	case !number.Negative:
		return fmt.Sprintf("2%04d%s", number.Exponent+5000, number.Digits), true
	}
	// A greater amount is a lesser number: every digit becomes its complement,
	// and the end sorts behind every digit.
	complement := strings.Map(func(digit rune) rune { return '9' - digit + '0' }, number.Digits)
	return fmt.Sprintf("0%04d%s~", 4999-number.Exponent, complement), true
}
