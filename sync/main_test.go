package sync_test

import (
	"testing"

	"github.com/cadastre-dev/cadastre/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }
