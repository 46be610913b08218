package remote

import (
	"net/http"
	"sync/atomic"
	"testing"

	"divan/replicator/spec"
)

// Each attempt counts, with its outcome; connections count when they are made and when
// they are used.
func TestFigures(t *testing.T) {
	var asked atomic.Int32
	with(t, func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		answerWith(w, 200, infoText)
	}, func(t *testing.T, p *peer) {
		t.Helper()
		db := p.open(spec.Address{})
		for range 2 {
			if _, err := db.Info(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		f := db.client.net.figures
		if f.Requests.Load() != 3 || f.FailedResponses.Load() != 1 || f.Responses.Load() != 2 || f.StreamResponses.Load() != 0 {
			t.Errorf("%d requests, %d failed, %d good, %d of feeds", f.Requests.Load(), f.FailedResponses.Load(), f.Responses.Load(), f.StreamResponses.Load())
		}
		if f.ConnectionsUsed.Load() != 3 || f.ConnectionsMade.Load() != 1 {
			t.Errorf("%d connections used, %d made", f.ConnectionsUsed.Load(), f.ConnectionsMade.Load())
		}
	})
	f := Figures{}
	f.answered(true, 200, nil)
	f.answered(true, 404, nil)
	if f.StreamResponses.Load() != 1 || f.FailedStreamResponses.Load() != 1 || f.Responses.Load() != 0 {
		t.Errorf("feeds: %d good, %d failed", f.StreamResponses.Load(), f.FailedStreamResponses.Load())
	}
}
