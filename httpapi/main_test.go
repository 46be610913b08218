package httpapi

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"go.uber.org/goleak"

	"divan/cluster/config"
	"divan/httpapi/apitest"
	"divan/httpapi/core"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// frontAPI is an API without databases.
func frontAPI(tb testing.TB, values config.Values) *API {
	tb.Helper()
	a, err := New(apitest.FrontDeps(tb, values))
	apitest.Must(tb, err)
	return a
}

// nodeAPI is the API of a whole node.
func nodeAPI(tb testing.TB, values config.Values) *API {
	tb.Helper()
	return nodeAs(tb, "divan@127.0.0.1", values, func(*core.Deps) {})
}

// nodeAs is nodeAPI for a node of that name; adapt may change what the API
// stands on.
func nodeAs(tb testing.TB, name string, values config.Values, adapt func(*core.Deps)) *API {
	tb.Helper()
	deps := apitest.NodeDeps(tb, name, values)
	adapt(&deps)
	a, err := New(deps)
	apitest.Must(tb, err)
	return a
}

// visit is one request of a test and what its answer has to be. An empty body
// is not compared.
type visit struct {
	who    string // name:password of Basic, "adm" for the administrator, "" for an anonymous client
	method string
	target string
	send   string
	status int
	body   string
}

// follow makes the requests one after the other.
func follow(t *testing.T, h http.Handler, steps []visit) {
	t.Helper()
	for _, s := range steps {
		headers := []string{"Content-Type: application/json"}
		switch s.who {
		case "":
		case "adm":
			headers = append(headers, "Authorization: Basic YWRtOnBhc3M=")
		default:
			r := http.Request{Header: http.Header{}}
			for i := range s.who {
				if s.who[i] == ':' {
					r.SetBasicAuth(s.who[:i], s.who[i+1:])
				}
			}
			headers = append(headers, "Authorization: "+r.Header.Get("Authorization"))
		}
		w := apitest.Ask(t, h, s.method+" "+s.target, s.send, headers...)
		if w.Code != s.status || (s.body != "" && w.Body.String() != s.body+"\n") {
			t.Errorf("%s: %s %s %s: got %d %s want %d %s", s.who, s.method, s.target, s.send, w.Code, w.Body, s.status, s.body)
		}
	}
}

// serve answers a request that a test has made itself.
func serve(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}
