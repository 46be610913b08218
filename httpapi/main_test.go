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
func frontAPI(tb testing.TB, values config.Values) *API {
	tb.Helper()
	holder := configured(tb, "-hashed-0e4a5b8e8a0ab13f6a6d3b4d2c3b9f4a40f1b1d6,salt", values)
	m, err := meta.New(meta.Options{Self: meta.Node{Name: "divan@127.0.0.1"}, Config: holder})
	must(tb, err)
	a := &API{
		deps: Deps{
			Meta: m, Config: holder, Auth: auth.New(auth.Options{Config: holder, Users: noUsers{}, Logger: zap.NewNop()}),
			Logger: zap.NewNop(), Version: "0.1.0",
		},
		log: zap.NewNop(), router: newRouter(allRoutes()), stats: newStatistics(), started: time.Now(),
	}
	a.registry, err = a.newRegistry()
	must(tb, err)
	return a
}

// configured is the configuration of a node of its own with the administrator
// adm, whose password is stored as given; values come on top.
func configured(tb testing.TB, stored string, values config.Values) *config.Holder {
	tb.Helper()
	flags := config.Values{
		"couchdb": {"single_node": "true"}, "chttpd_auth": {"iterations": "1"}, "admins": {"adm": stored},
	}
	for section, keys := range values {
		if flags[section] == nil {
			flags[section] = map[string]string{}
		}
		for k, v := range keys {
			flags[section][k] = v
		}
	}
	holder, err := config.New(config.Options{
		Flags: flags,
		Hash: func(password string) (string, error) {
			return auth.HashAdmin(context.WithoutCancel(tb.Context()), password, "pbkdf2", "sha256", 1)
		},
	})
	must(tb, err)
	return holder
}

// ask sends a request to an API and returns the answer. The line is "METHOD
// target", headers are "Name: value".
func ask(tb testing.TB, h http.Handler, line, body string, headers ...string) *httptest.ResponseRecorder {
	tb.Helper()
	r := request(line, body, headers)
	if body == "" {
		r.Body = http.NoBody
		r.ContentLength = 0
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// testCall returns an admitted call for tests of single methods, and where its
// answer goes.
func testCall(tb testing.TB, a *API, line, body string, headers ...string) (*call, *httptest.ResponseRecorder) {
	tb.Helper()
	w := httptest.NewRecorder()
	c := a.newCall(w, request(line, body, headers))
	must(tb, c.admit())
	return c, w
}

// request builds a request as a server gets it: the target is as the client
// wrote it.
func request(line, body string, headers []string) *http.Request {
	method, target, _ := strings.Cut(line, " ")
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.RequestURI = target
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	return r
}
