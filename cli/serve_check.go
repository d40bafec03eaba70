package cli

import (
	"fmt"
	"reflect"
	"time"

	"github.com/cadastre-dev/cadastre/metadef"
)

// Validate refuses numbers and times that a flag does not say it takes: a server
// that quietly did something else would be taken at its word. The command line
// calls it.
func (o ServeOptions) Validate() error {
	for _, flag := range []struct {
		name               string
		value, least, most int64
	}{
		{"namespaces-per-project", int64(o.NamespacesPerProject), 1, 0},
		{"properties-per-namespace", int64(o.PropertiesPerNamespace), 1, metadef.MaxDefinitions},
		{"definition-bytes", int64(o.DefinitionBytes), 1, metadef.MaxDefinition},
		{"max-metadata-items", int64(o.MaxMetadataItems), 0, 0},
		{"write-rate", int64(o.WriteRate), 0, 0},
		{"write-burst", int64(o.WriteBurst), 1, 0},
	} {
		if flag.value < flag.least || flag.most > 0 && flag.value > flag.most {
			return fmt.Errorf("--%s must be %s, is %d", flag.name, rangeText(flag.least, flag.most), flag.value)
		}
	}
	if o.AuditRetention <= 0 {
		return fmt.Errorf("--audit-retention must be more than 0s, is %s", o.AuditRetention)
	}
	if ttl := o.Keystone.CacheTTL; ttl <= 0 || ttl > time.Minute {
		return fmt.Errorf("--keystone-cache-ttl must be more than 0s and at most 60s, is %s", ttl)
	}
	limits := reflect.ValueOf(o.Limits)
	for i := range limits.NumField() {
		field := limits.Field(i)
		if field.CanInt() && field.Int() < 0 || field.CanFloat() && !(field.Float() >= 0) {
			return fmt.Errorf("no --limit can be negative, as that of %s is; 0 is no limit", limits.Type().Field(i).Name)
		}
	}
	return nil
}

// rangeText says in words from where to where, 0 being no end.
func rangeText(least, most int64) string {
	if most == 0 {
		return fmt.Sprintf("%d or more", least)
	}
	return fmt.Sprintf("%d to %d", least, most)
}
