package core_test

import (
	"net/http/httptest"
	"testing"

	"divan/cluster/config"
	"divan/httpapi/apitest"
	"divan/httpapi/core"
)

// coreAPI is an API without endpoints.
func coreAPI(tb testing.TB, values config.Values) *core.API {
	tb.Helper()
	return core.New(apitest.FrontDeps(tb, values))
}

// testCall returns an admitted call for tests of single methods, and where its
// answer goes.
func testCall(tb testing.TB, a *core.API, line, body string, headers ...string) (*core.Call, *httptest.ResponseRecorder) {
	tb.Helper()
	w := httptest.NewRecorder()
	c, err := core.Admitted(a, w, apitest.Request(tb, line, body, headers))
	apitest.Must(tb, err)
	return c, w
}
