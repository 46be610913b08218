package apitest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// Request builds a request as a server gets it: the target is as the client
// wrote it.
func Request(tb testing.TB, line, body string, headers []string) *http.Request {
	tb.Helper()
	method, target, _ := strings.Cut(line, " ")
	r := httptest.NewRequestWithContext(context.WithoutCancel(tb.Context()), method, target, strings.NewReader(body))
	r.RequestURI = target
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	return r
}

// WaitFor waits until a condition holds.
func WaitFor(t *testing.T, ok func() bool) {
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

// Must ends the test on an error.
func Must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
