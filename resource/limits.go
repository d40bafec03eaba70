package resource

import "github.com/cadastre-dev/cadastre/metadef"

// WriteRate bounds how many writes of a project are accepted.
type WriteRate struct {
	PerMinute int // 0 is no limit
	Burst     int // how many at once after a pause
}

// Limits are what the operator allows; 0 switches a limit off.
type Limits struct {
	MetadataItems int // of one resource
	Writes        WriteRate
}

// DefaultLimits returns the limits of a server without limits of its own.
func DefaultLimits() Limits {
	return Limits{MetadataItems: metadef.MaxMetadataItems, Writes: WriteRate{PerMinute: 600, Burst: 200}}
}
