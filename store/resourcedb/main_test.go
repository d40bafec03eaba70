package resourcedb_test

import (
	"database/sql/driver"
	"strings"
	"sync/atomic"
	"testing"

	"modernc.org/sqlite"

	"github.com/cadastre-dev/cadastre/store/storetest"
)

// comparisons counts the calls of counted_instr, which wraps SQLite's instr.
var comparisons atomic.Int64

func TestMain(m *testing.M) {
	sqlite.MustRegisterScalarFunction("counted_instr", 2,
		func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
			comparisons.Add(1)
			text, _ := args[0].(string) // NULL contains nothing
			part, _ := args[1].(string)
			return int64(strings.Index(text, part) + 1), nil
		})
	storetest.Main(m)
}
