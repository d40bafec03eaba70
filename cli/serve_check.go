package cli

import (
	"cmp"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/alecthomas/kong"
)

// Validate returns an error for a number or a duration that its flag does not
// take. The command line calls it.
func (ServeOptions) Validate(parsed *kong.Context) error {
	for _, flag := range parsed.Flags() {
		value, ok := number(flag.Target)
		low, high := cmp.Or(flag.Tag.Get("min"), "0"), flag.Tag.Get("max")
		switch {
		case !ok:
		case high != "" && !(value >= bound(low) && value <= bound(high)):
			return fmt.Errorf("--%s must be %s to %s, is %v", flag.Name, low, high, flag.Target)
		case !(value >= bound(low)): // not a number is not, either
			return fmt.Errorf("--%s must be %s or more, is %v", flag.Name, low, flag.Target)
		}
	}
	return nil
}

// number returns the value of a flag that takes a number, or a duration in
// nanoseconds.
func number(value reflect.Value) (float64, bool) {
	switch {
	case value.CanInt():
		return float64(value.Int()), true
	case value.CanFloat():
		return value.Float(), true
	}
	return 0, false
}

// bound returns the value of a tag: a number, or a duration in nanoseconds.
func bound(tag string) float64 {
	if duration, err := time.ParseDuration(tag); err == nil {
		return float64(duration)
	}
	value, err := strconv.ParseFloat(tag, 64)
	if err != nil {
		panic("cli: a bound of a flag is neither a number nor a duration: " + tag)
	}
	return value
}
