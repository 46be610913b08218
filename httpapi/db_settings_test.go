package httpapi

import (
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"divan/httpapi/apitest"
)

// Of the members of a security object that have one name the last one counts, for who may
// do what and for who reads it.
func TestSecurityNamesTwice(t *testing.T) {
	a := nodeAPI(t, nil)
	const object = "{\"error\":\"bad_request\",\"reason\":\"Request body must be a JSON object\"}"
	follow(t, a, []visit{
		{"adm", "PUT", "/db", "", 201, ""},
		{"adm", "PUT", "/db/_security", `{"members":{"names":["a"]},"x":{"y":1,"y":2},"m\u0065mbers":{"names":["c"],"names":["b"]}}`, 200, ""},
		{"adm", "GET", "/db/_security", "", 200, `{"x":{"y":2},"members":{"names":["b"]}}`},
		{"adm", "PUT", "/db/_security", `[]`, 400, object},
		{"adm", "PUT", "/db/_security", `{"members":[1]}`, 400, ""},
	})
}

// meanwhileBody is a body that comes when something has been done.
type meanwhileBody struct {
	io.Reader
	do func()
}

func (b *meanwhileBody) Read(p []byte) (int, error) {
	if b.do != nil {
		b.do()
		b.do = nil
	}
	return b.Reader.Read(p)
}

// An account that may change the settings of a database may not change those of the next
// database of the same name, however late the body of the request comes.
func TestSettingsOfTheNextDatabase(t *testing.T) {
	a := nodeAPI(t, nil)
	follow(t, a, []visit{
		{"adm", "PUT", "/_users/org.couchdb.user:ann", `{"name":"ann","password":"pw","type":"user","roles":[]}`, 201, ""},
	})
	const mine = `{"admins":{"names":["ann"]}}`
	late := func(target, body string, meanwhile []visit) *httptest.ResponseRecorder {
		follow(t, a, []visit{{"adm", "PUT", "/db", "", 201, ""}, {"adm", "PUT", "/db/_security", mine, 200, ""}})
		r := apitest.Request(t, "PUT "+target, body, []string{"Content-Type: application/json"})
		r.SetBasicAuth("ann", "pw")
		r.Body = io.NopCloser(&meanwhileBody{strings.NewReader(body), func() { follow(t, a, meanwhile) }})
		w := httptest.NewRecorder()
		a.ServeHTTP(w, r)
		return w
	}
	another := []visit{{"adm", "DELETE", "/db", "", 200, ""}, {"adm", "PUT", "/db", "", 201, ""}}
	dismissed := []visit{{"adm", "PUT", "/db/_security", `{}`, 200, ""}}
	deleted := []visit{{"adm", "DELETE", "/db", "", 200, ""}}
	for _, s := range []struct {
		target, body string
		meanwhile    []visit
		status       int
	}{
		{"/db/_security", mine, nil, 200},
		{"/db/_security", mine, another, 403},
		{"/db/_security", mine, dismissed, 401},
		{"/db/_security", mine, deleted, 404},
		{"/db/_revs_limit", "5", another, 403},
		{"/db/_revs_limit", "5", dismissed, 401},
		{"/db/_revs_limit", "5", deleted, 404},
	} {
		if w := late(s.target, s.body, s.meanwhile); w.Code != s.status {
			t.Errorf("%s: %d %s, want %d", s.target, w.Code, w.Body, s.status)
		}
		if s.status == 401 || s.status == 403 {
			follow(t, a, []visit{{"adm", "GET", "/db/_revs_limit", "", 200, "1000"}})
			if w := apitest.Ask(t, a, "GET /db/_security", "", "Authorization: Basic YWRtOnBhc3M="); strings.Contains(w.Body.String(), "ann") {
				t.Errorf("%s: %s", s.target, w.Body)
			}
		}
		apitest.Ask(t, a, "DELETE /db", "", "Authorization: Basic YWRtOnBhc3M=")
	}
}
