package httpapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

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

// visit is one request of a test and what its answer has to be. An empty body
// is not compared.
type visit struct {
	who    string // name:password of Basic, "adm" for the administrator, "" for nobody
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
		w := ask(t, h, s.method+" "+s.target, s.send, headers...)
		if w.Code != s.status || (s.body != "" && w.Body.String() != s.body+"\n") {
			t.Errorf("%s: %s %s %s: got %d %s want %d %s", s.who, s.method, s.target, s.send, w.Code, w.Body, s.status, s.body)
		}
	}
}

// waitFor waits until a condition holds.
func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for range 10_000 {
		if ok() {
			return
		}
		<-tick.C
	}
	t.Fatal("waited in vain")
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
