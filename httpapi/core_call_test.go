package httpapi

import (
	"divan/cluster/config"
	"net/http/httptest"
	"testing"
)

// coreAPI is an API without endpoints.
func coreAPI(tb testing.TB, values config.Values) *engine {
	tb.Helper()
	return newEngine(frontDeps(tb, values))
}

// testCall returns an admitted call for tests of single methods, and where its
// answer goes.
func testCall(tb testing.TB, a *engine, line, body string, headers ...string) (*call, *httptest.ResponseRecorder) {
	tb.Helper()
	w := httptest.NewRecorder()
	c, err := admitted(a, w, request(line, body, headers))
	must(tb, err)
	return c, w
}
