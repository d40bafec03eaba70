package cli

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/alecthomas/kong"
)

// Validate returns an error for a number or a duration that its flag does not
// take. The command line calls it.
func (ServeOptions) Validate(parsed *kong.Context) error {
	for _, flag := range parsed.Flags() {
		value, ok := number(flag.Target.Interface())
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

// number returns the value of a flag that takes a number, a duration in
// seconds.
func number(value any) (float64, bool) {
	switch value := value.(type) {
	case int:
		return float64(value), true
	case int64:
		return float64(value), true
	case float64:
		return value, true
	case time.Duration:
		return value.Seconds(), true
	}
	return 0, false
}

// bound returns the value of a tag, a number or a duration.
func bound(tag string) float64 {
	if value, err := strconv.ParseFloat(tag, 64); err == nil {
		return value
	}
	duration, err := time.ParseDuration(tag)
	if err != nil {
		panic("cli: a bound of a flag is neither a number nor a duration: " + tag)
	}
	return duration.Seconds()
}
