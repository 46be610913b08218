package httpapi

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"divan/cluster/config"
	"divan/cluster/meta"
	"divan/httpapi/auth"
	"divan/storage/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noUsers is an authentication database without documents.
type noUsers struct{}

func (noUsers) Get(context.Context, string, string) (auth.UserDoc, error) {
	return auth.UserDoc{}, fault.New(fault.NotFound, "missing")
}

func (noUsers) Put(context.Context, string, auth.UserDoc) error {
	return fault.New(fault.NotFound, "missing")
}

func (noUsers) Watch(context.Context, string, func(), func(string)) error { return nil }

// frontAPI is an API without databases: enough for everything that answers
// before one is looked at. The administrator is adm with password pass.
func frontAPI(t testing.TB, values config.Values) *API {
	t.Helper()
	flags := config.Values{
		"chttpd_auth": {"iterations": "1"},
		"admins":      {"adm": "-hashed-0e4a5b8e8a0ab13f6a6d3b4d2c3b9f4a40f1b1d6,salt"},
	}
	for section, keys := range values {
		if flags[section] == nil {
			flags[section] = map[string]string{}
		}
		for k, v := range keys {
			flags[section][k] = v
		}
	}
	holder, err := config.New(config.Options{Flags: flags})
	if err != nil {
		t.Fatal(err)
	}
	m, err := meta.New(meta.Options{Self: meta.Node{Name: "divan@127.0.0.1"}, Config: holder})
	if err != nil {
		t.Fatal(err)
	}
	a := &API{
		deps: Deps{
			Meta: m, Config: holder, Auth: auth.New(auth.Options{Config: holder, Users: noUsers{}, Logger: zap.NewNop()}),
			Logger: zap.NewNop(), Version: "0.1.0",
		},
		log: zap.NewNop(), router: newRouter(allRoutes()), stats: newStatistics(), started: time.Now(),
	}
	if a.registry, err = a.newRegistry(); err != nil {
		t.Fatal(err)
	}
	return a
}

// ask sends a request to an API and returns the answer. The line is "METHOD
// target", headers are "Name: value".
func ask(t testing.TB, h http.Handler, line, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	method, target, _ := strings.Cut(line, " ")
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.RequestURI = target
	if body == "" {
		r.Body = http.NoBody
		r.ContentLength = 0
	}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// testCall returns an admitted call for tests of single methods, and where its
// answer goes.
func testCall(t testing.TB, a *API, line, body string, headers ...string) (*call, *httptest.ResponseRecorder) {
	t.Helper()
	method, target, _ := strings.Cut(line, " ")
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.RequestURI = target
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	c := a.newCall(w, r)
	if err := c.admit(); err != nil {
		t.Fatal(err)
	}
	return c, w
}
