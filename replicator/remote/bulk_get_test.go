package remote

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"divan/replicator/endpoint"
	"divan/replicator/spec"
	"divan/storage/doc"
	"divan/storage/fault"
)

// An answer without end is not read for ever.
func TestFetchEndless(t *testing.T) {
	with(t, func(w http.ResponseWriter, _ *http.Request) {
		_, err := io.WriteString(w, `{"results":[`)
		for err == nil {
			_, err = io.WriteString(w, `{"id":"other","docs":[]},`)
		}
	}, func(t *testing.T, p *peer) {
		t.Helper()
		d := p.open(spec.Address{})
		_, err := fetchAll(t.Context(), d, endpoint.FetchOptions{}, endpoint.Wanted{ID: "doc", Revs: []doc.Rev{rev(1, "a")}})
		if !endpoint.Retryable(err) || !strings.Contains(fault.Reason(err), "more results") {
			t.Errorf("error: %v", err)
		}
		if got := len(p.requests()); got != 1+d.client.options.Retries {
			t.Errorf("asked %d times", got)
		}
	})
}
