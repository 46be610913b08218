package httpapi

import (
	"testing"

	"go.uber.org/goleak"

	"divan/cluster/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// frontAPI is an API without databases.
func frontAPI(tb testing.TB, values config.Values) *API {
	tb.Helper()
	a, err := New(frontDeps(tb, values))
	must(tb, err)
	return a
}

// nodeAPI is the API of a whole node.
func nodeAPI(tb testing.TB, values config.Values) *API {
	tb.Helper()
	return nodeAs(tb, "divan@127.0.0.1", values, func(*Deps) {})
}

// nodeAs is nodeAPI for a node of that name; adapt may change what the API
// stands on.
func nodeAs(tb testing.TB, name string, values config.Values, adapt func(*Deps)) *API {
	tb.Helper()
	deps := nodeDeps(tb, name, values)
	adapt(&deps)
	a, err := New(deps)
	must(tb, err)
	return a
}
