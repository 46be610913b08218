package remote

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"divan/replicator/endpoint"
	"divan/replicator/spec"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
	"divan/storage/pause"
)

const infoText = `{"db_name":"db","doc_count":3,"doc_del_count":2,"update_seq":17,"instance_start_time":"1400000000"}`

// A server that fails is asked again, with delays that double, as often as was
// asked for.
func TestRetries(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fails int32
		fail  func(http.ResponseWriter)
		took  time.Duration
		kind  fault.Kind
	}{
		{"once", 1, func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) }, 250 * time.Millisecond, 0},
		{"502 four times", 4, func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) }, 3750 * time.Millisecond, 0},
		{"always", 1000, func(w http.ResponseWriter) { answerWith(w, 503, `{"error":"x","reason":"y"}`) }, 7750 * time.Millisecond, fault.Unavailable},
		{"no answer", 2, func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, 750 * time.Millisecond, 0},
		{"never an answer", 1000, func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, 7750 * time.Millisecond, fault.Unavailable},
		{"later", 1, func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusServiceUnavailable)
		}, 7 * time.Second, 0},
		{"501", 1, func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotImplemented) }, 0, fault.Unavailable},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var asked atomic.Int32
			with(t, func(w http.ResponseWriter, _ *http.Request) {
				if asked.Add(1) <= tc.fails {
					tc.fail(w)
					return
				}
				answerWith(w, 200, infoText)
			}, func(t *testing.T, p *peer) {
				t.Helper()
				began := time.Now()
				info, err := p.open(spec.Address{}).Info(t.Context())
				if fault.KindOf(err) != tc.kind || endpoint.Retryable(err) != (tc.kind != 0) {
					t.Errorf("error: %v", err)
				}
				if took := time.Since(began); took != tc.took {
					t.Errorf("took %v, want %v", took, tc.took)
				}
				if err == nil && (info.Documents != 5 || info.UpdateSeq != "17" || info.InstanceStart != "1400000000") {
					t.Errorf("%+v", info)
				}
			})
		})
	}
}

// An overloaded host is left alone by all requests, for longer and longer, and for less again when
// it answers.
func TestOverload(t *testing.T) {
	var left atomic.Int32
	left.Store(50)
	with(t, func(w http.ResponseWriter, _ *http.Request) {
		if left.Add(-1) >= 0 {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		answerWith(w, 200, infoText)
	}, func(t *testing.T, p *peer) {
		t.Helper()
		d, began := p.open(spec.Address{}), time.Now()
		if _, err := d.Info(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 20*time.Second || took > slowEnough {
			t.Errorf("50 refusals took %v", took)
		}
		began = time.Now()
		asked := 0
		for d.client.net.limiterOf(d.client.host) != nil {
			if _, err := d.Info(t.Context()); err != nil {
				t.Fatal(err)
			}
			if asked++; asked > 100 {
				t.Fatal("the host is never trusted again")
			}
		}
		if took := time.Since(began); took < 2*time.Second {
			t.Errorf("requests were not held back: %v", took)
		}
		left.Store(1 << 30)
		began = time.Now()
		if _, err := d.Info(t.Context()); !endpoint.Retryable(err) {
			t.Errorf("always overloaded: %v", err)
		}
		if took := time.Since(began); took > slowEnough+slowMost {
			t.Errorf("gave up after %v", took)
		}
		left.Store(1)
	})
}

// Retry-After of a 429 counts.
func TestOverloadRetryAfter(t *testing.T) {
	var asked atomic.Int32
	with(t, func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			w.Header().Set("Retry-After", time.Now().Add(90*time.Second).UTC().Format(http.TimeFormat))
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		answerWith(w, 200, infoText)
	}, func(t *testing.T, p *peer) {
		t.Helper()
		began := time.Now()
		if _, err := p.open(spec.Address{}).Info(t.Context()); err != nil || time.Since(began) < 89*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// A server that takes a request and says nothing is given up, and so is one
// that stops in the middle of an answer; one that works for long is not.
func TestSilence(t *testing.T) {
	for _, tc := range []struct {
		name   string
		answer func(w http.ResponseWriter, r *http.Request)
		ok     bool
	}{
		{"no answer", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, false},
		{"half an answer", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000")
			answerWith(w, 200, infoText[:20])
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, false},
		{"late", func(w http.ResponseWriter, r *http.Request) {
			_ = pause.For(r.Context(), 100*time.Second)
			answerWith(w, 200, infoText)
		}, true},
		{"slow", func(w http.ResponseWriter, r *http.Request) {
			for i := range len(infoText) {
				_ = pause.For(r.Context(), 20*time.Second)
				_, _ = w.Write([]byte(infoText[i : i+1]))
				_ = http.NewResponseController(w).Flush()
			}
		}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			with(t, tc.answer, func(t *testing.T, p *peer) {
				t.Helper()
				_, err := p.open(spec.Address{}).Info(t.Context())
				if (err == nil) != tc.ok || err != nil && (!endpoint.Retryable(err) || !errors.Is(err, errSilent)) {
					t.Errorf("error: %v", err)
				}
			})
		})
	}
}

// An answer that breaks off is asked for again, as one that does not come.
func TestAnswerBreaksOff(t *testing.T) {
	var asked atomic.Int32
	with(t, func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) <= 2 {
			w.Header().Set("Content-Length", "1000")
			answerWith(w, 200, infoText[:20])
			return
		}
		answerWith(w, 200, infoText)
	}, func(t *testing.T, p *peer) {
		t.Helper()
		if _, err := p.open(spec.Address{}).Info(t.Context()); err != nil || asked.Load() != 3 {
			t.Errorf("%v after %d answers", err, asked.Load())
		}
	})
}

// An answer that is compressed to nothing does not fill the memory, and what a
// target lacks is asked in parts then.
func TestLongAnswers(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	if _, err := io.Copy(z, io.MultiReader(strings.NewReader(`{"x":"`), io.LimitReader(endless{}, maxAnswer+4096), strings.NewReader(`"}`))); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	with(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		answerWith(w, 200, zipped.String())
	}, func(t *testing.T, p *peer) {
		t.Helper()
		d := p.open(spec.Address{})
		if _, err := d.Info(t.Context()); !endpoint.Retryable(err) || !strings.Contains(fault.Reason(err), "larger than") {
			t.Errorf("%v", err)
		}
		if got := p.requests(); len(got) != 1 {
			t.Error(got)
		}
		asked := []shard.IDRevs{{ID: "a", Revs: []doc.Rev{rev(1, "a")}}}
		if _, err := d.Missing(t.Context(), asked); !fault.Is(err, fault.RequestTooLarge) {
			t.Errorf("%v", err)
		}
	})
}

// endless reads as the letter x.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return copy(p, bytes.Repeat([]byte("x"), len(p))), nil }

// A host that cannot be reached is an error that may pass, and ctx ends the
// attempts.
func TestUnreachable(t *testing.T) {
	with(t, nil, func(t *testing.T, p *peer) {
		t.Helper()
		for _, proxy := range []string{"", "http://u:secret@" + serverIP + ":2", "socks5://u:secret@" + serverIP + ":2"} {
			d := p.open(spec.Address{URL: "http://" + serverIP + ":1/db/", Proxy: proxy})
			_, err := d.Info(t.Context())
			if reason := fault.Reason(err); !endpoint.Retryable(err) || strings.Contains(reason, "its proxy: ") == (proxy == "") || strings.Contains(fmt.Sprint(err), "secret") {
				t.Errorf("refused: %v", err)
			}
		}
		p.server.PowerOff()
		began := time.Now()
		if _, err := p.open(spec.Address{}).Info(t.Context()); !endpoint.Retryable(err) || time.Since(began) > 6*30*time.Second+10*time.Second {
			t.Errorf("off: %v after %v", err, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := p.open(spec.Address{}).Info(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("ended: %v", err)
		}
		if _, err := p.open(spec.Address{}).Changes(ctx, endpoint.ChangesQuery{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("changes: %v", err)
		}
	})
}

// Redirections are followed with the same method, and what says who asks goes
// to the same server only.
func TestRedirects(t *testing.T) {
	with(t, func(w http.ResponseWriter, r *http.Request) {
		to, _ := strings.CutPrefix(r.URL.Path, "/db/")
		_, password, _ := r.BasicAuth()
		switch {
		case r.URL.Path == "/_session":
			w.WriteHeader(http.StatusNotFound)
		case strings.HasPrefix(to, "_local/3"):
			var status int
			_, _ = fmt.Sscanf(to, "_local/%d", &status)
			w.Header().Set("Location", "../../other/"+strings.TrimPrefix(to, "_local/"))
			w.WriteHeader(status)
		case strings.HasPrefix(to, "_local/away"):
			http.Redirect(w, r, "http://"+serverIP+":5985/there", http.StatusFound)
		case strings.HasPrefix(to, "_local/circle"):
			http.Redirect(w, r, r.URL.Path, http.StatusFound)
		default:
			answerWith(w, 200, fmt.Sprintf(`{"_id":"x","_rev":"0-1","method":%q,"password":%q,"header":%q}`, r.Method, password, r.Header.Get("X-Secret")))
		}
	}, func(t *testing.T, p *peer) {
		t.Helper()
		p.serve(p.server, "0.0.0.0:5985", func(w http.ResponseWriter, r *http.Request) {
			answerWith(w, 200, fmt.Sprintf(`{"_id":"x","_rev":"0-1","auth":%q,"header":%q}`, r.Header.Get("Authorization"), r.Header.Get("X-Secret")))
		})
		d := p.open(spec.Address{Username: "adm", Password: "pass", Headers: [][2]string{{"X-Secret", "s"}}})
		for _, status := range []string{"301", "302", "303", "307", "308"} {
			body, _, err := d.Local(t.Context(), status)
			if err != nil || string(body) != `{"method":"GET","password":"pass","header":"s"}` {
				t.Errorf("%s: %s %v", status, body, err)
			}
		}
		if body, _, err := d.Local(t.Context(), "away"); err != nil || string(body) != `{"auth":"","header":""}` {
			t.Errorf("another server: %s %v", body, err)
		}
		if _, _, err := d.Local(t.Context(), "circle"); !endpoint.Retryable(err) {
			t.Errorf("a circle: %v", err)
		}
		p.requests()
		if _, err := d.PutLocal(t.Context(), "307", "", []byte(`{"a":1}`)); err != nil {
			t.Error(err)
		}
		if got := p.requests(); !slices.Equal(got, []string{"PUT /db/_local/307", "PUT /other/307"}) {
			t.Errorf("PUT: %v", got)
		}
	})
}

// The limit of connections holds, and a feed takes no part in it.
func TestConnections(t *testing.T) {
	var now, most atomic.Int32
	with(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "_changes") {
			_, _ = w.Write([]byte("\n"))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		_ = pause.For(r.Context(), time.Second)
		now.Add(-1)
		answerWith(w, 200, infoText)
	}, func(t *testing.T, p *peer) {
		t.Helper()
		d := p.open(spec.Address{})
		feed, err := d.Changes(t.Context(), endpoint.ChangesQuery{Continuous: true})
		if err != nil {
			t.Fatal(err)
		}
		defer feed.Close()
		began, done := time.Now(), make(chan error)
		for range 5 {
			go func() {
				_, err := d.Info(t.Context())
				done <- err
			}()
		}
		for range 5 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if most.Load() != 1 || time.Since(began) != 5*time.Second {
			t.Errorf("%d at once, %v", most.Load(), time.Since(began))
		}
	})
}
