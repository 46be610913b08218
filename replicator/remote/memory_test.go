package remote

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"divan/replicator/endpoint"
	"divan/replicator/spec"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
	"divan/storage/memory"
	"divan/storage/pause"
)

// bounded opens the peer's database with a budget of memory; used tells the most that was
// taken of it.
func (p *peer) bounded(budget int64) (d *Database, b *memory.Budget, shares *memory.Shares) {
	p.t.Helper()
	b = memory.NewBudget(func() int64 { return budget })
	shares = memory.ForReplications(b)
	d, err := New(Options{
		Network: p.network(TLS{}), Address: spec.Address{URL: peerURL}, UserAgent: "test",
		Options: spec.Options{Connections: 4, ConnectionTimeout: 30 * time.Second, Retries: 2},
		Memory:  shares.Owner("account ada"), MaxDocument: 1 << 20,
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = d.Close() })
	return d, b, shares
}

// endlessly sends a text and then the letter x until the client has enough, and counts
// the bytes that went.
func endlessly(w http.ResponseWriter, text string, sent *atomic.Int64) {
	_, err := io.WriteString(w, text)
	piece := strings.Repeat("x", 64<<10)
	for n := 0; n < 64<<20 && err == nil; {
		var more int
		more, err = io.WriteString(w, piece)
		n += more
		sent.Add(int64(more))
	}
}

// An endless answer of any kind is left after as much as it may have, the error says so, and all
// memory is given back.
func TestEndlessAnswers(t *testing.T) {
	wanted := []endpoint.Wanted{{ID: "doc", Revs: []doc.Rev{rev(1, "a"), rev(1, "b")}}}
	fetch := func(t *testing.T, d *Database, o endpoint.FetchOptions) error {
		t.Helper()
		return d.Fetch(t.Context(), o, wanted, func(*endpoint.Doc, endpoint.Contents) error { return nil })
	}
	changes := func(continuous bool) func(t *testing.T, d *Database) error {
		return func(t *testing.T, d *Database) error {
			t.Helper()
			f, err := d.Changes(t.Context(), endpoint.ChangesQuery{Continuous: continuous})
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.Next(t.Context(), make([]endpoint.Change, 10))
			return err
		}
	}
	json, mixed := "application/json", "multipart/mixed; boundary=o"
	for name, tc := range map[string]struct {
		kind, text string
		most       int // bytes that are read in one answer
		do         func(t *testing.T, d *Database) error
	}{
		"id of a change":            {json, `{"results":[{"seq":1,"id":"`, maxRow, changes(false)},
		"member beside the changes": {json, `{"pending":"`, maxRow, changes(false)},
		"name of a member":          {json, `{"`, maxRow, changes(false)},
		"line of a feed":            {json, `{"seq":"`, maxRow, changes(true)},
		"document of _bulk_get": {json, `{"results":[{"id":"doc","docs":[{"ok":{"_id":"doc","a":"`, 2 << 20, func(t *testing.T, d *Database) error {
			t.Helper()
			return fetch(t, d, endpoint.FetchOptions{})
		}},
		"document in a list": {json, `[{"ok":{"_id":"doc","a":"`, 2 << 20, func(t *testing.T, d *Database) error {
			t.Helper()
			return fetch(t, d, endpoint.FetchOptions{NoBulkGet: true})
		}},
		"part": {mixed, "--o\r\nContent-Type: application/json\r\n\r\n{\"_id\":\"doc\",\"a\":\"", 2 << 20, func(t *testing.T, d *Database) error {
			t.Helper()
			return fetch(t, d, endpoint.FetchOptions{NoBulkGet: true})
		}},
		"part with attachments": {
			mixed, "--o\r\nContent-Type: multipart/related; boundary=i\r\n\r\n--i\r\nContent-Type: application/json\r\n\r\n{\"_id\":\"doc\",\"a\":\"", 2 << 20,
			func(t *testing.T, d *Database) error {
				t.Helper()
				return fetch(t, d, endpoint.FetchOptions{NoBulkGet: true})
			},
		},
		"header of a part": {mixed, "--o\r\nContent-Type: ", 128 << 10, func(t *testing.T, d *Database) error {
			t.Helper()
			return fetch(t, d, endpoint.FetchOptions{NoBulkGet: true})
		}},
		"answer of _revs_diff": {json, `{"doc":{"missing":["`, 2 << 20, func(t *testing.T, d *Database) error {
			t.Helper()
			_, err := d.Missing(t.Context(), []shard.IDRevs{{ID: "doc", Revs: []doc.Rev{rev(1, "a")}}})
			return err
		}},
		"answer of _bulk_docs": {json, `[{"id":"`, 2 << 20, func(t *testing.T, d *Database) error {
			t.Helper()
			_, err := d.Write(t.Context(), []*endpoint.Doc{{ID: "doc", Path: doc.Path{Start: 1, IDs: []string{rev(1, "a").ID}}, Body: []byte("{}")}})
			return err
		}},
		"checkpoint": {json, `{"_id":"_local/x","session_id":"`, 2 << 20, func(t *testing.T, d *Database) error {
			t.Helper()
			_, _, err := d.Local(t.Context(), "x")
			return err
		}},
		"information": {json, `{"db_name":"`, 1 << 20, func(t *testing.T, d *Database) error {
			t.Helper()
			_, err := d.Info(t.Context())
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var sent, answers atomic.Int64
			with(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", tc.kind)
				answers.Add(1)
				endlessly(w, tc.text, &sent)
			}, func(t *testing.T, p *peer) {
				t.Helper()
				d, b, _ := p.bounded(100 << 20)
				err := tc.do(t, d)
				if err == nil || fault.Reason(err) == "" {
					t.Errorf("%v", err)
				}
				_ = p.http.Close() // what is sent has an end
				synctest.Wait()
				if most := answers.Load() * int64(tc.most+1<<20); sent.Load() > most { // pipes on the way hold some
					t.Errorf("%d bytes were read, more than %d", sent.Load(), most)
				}
				if n := b.Used(); n != 0 {
					t.Errorf("%d bytes are taken for nothing", n)
				}
			})
		})
	}
}

// A header of a megabyte is no answer.
func TestLongHeader(t *testing.T) {
	with(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Long", strings.Repeat("x", 1<<20))
		answerWith(w, 200, infoText)
	}, func(t *testing.T, p *peer) {
		t.Helper()
		d, _, _ := p.bounded(100 << 20)
		if _, err := d.Info(t.Context()); !endpoint.Retryable(err) {
			t.Errorf("%v", err)
		}
	})
}

// The text of a refusal is kept in histories: it has an end.
func TestLongReason(t *testing.T) {
	with(t, func(w http.ResponseWriter, _ *http.Request) {
		answerWith(w, 403, `{"error":"`+strings.Repeat("e", 20_000)+`","reason":"`+strings.Repeat("ä", 20_000)+`"}`)
	}, func(t *testing.T, p *peer) {
		t.Helper()
		d, _, _ := p.bounded(100 << 20)
		_, _, err := d.Local(t.Context(), "x")
		var f *fault.Error
		if !errors.As(err, &f) || len(f.Reason) > maxReason+3 || len(f.Code) > maxReason+3 || !strings.HasSuffix(f.Reason, "ä…") {
			t.Errorf("%v", err)
		}
	})
}

// Documents that are too large, or none, are passed over, and all others come: by
// _bulk_get, and one by one.
func TestDocumentsPassedOver(t *testing.T) {
	wanted := []endpoint.Wanted{
		{ID: "a", Revs: []doc.Rev{rev(1, "a")}},
		{ID: "large", Revs: []doc.Rev{rev(1, "b"), rev(1, "c")}},
		{ID: "odd", Revs: []doc.Rev{rev(1, "d")}},
		{ID: "z", Revs: []doc.Rev{rev(1, "e")}},
	}
	text := func(id string, r doc.Rev) string {
		more := ""
		switch {
		case id == "large" && r == rev(1, "b"):
			more = `,"v":"` + strings.Repeat("x", 3<<20) + `"`
		case id == "odd":
			more = `,"_odd":1`
		}
		return fmt.Sprintf(`{"_id":%q,"_rev":%q%s}`, id, r, more)
	}
	bulk := true
	with(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		list := func(id, open, closing string, asked func(rev string) bool) string {
			out := ""
			for _, want := range wanted {
				for _, one := range want.Revs {
					if want.ID == id && asked(one.String()) {
						out += open + text(id, one) + closing
					}
				}
			}
			return out
		}
		if strings.HasSuffix(r.URL.Path, "_bulk_get") {
			if !bulk {
				answerWith(w, 404, `{"error":"not_found"}`)
				return
			}
			_, _ = io.WriteString(w, `{"results":[`)
			first := true
			_ = doc.EachElement(doc.Lookup(body, "docs"), func(v []byte) error {
				id, _ := doc.Unquote(doc.Lookup(v, "id"))
				asked, _ := doc.Unquote(doc.Lookup(v, "rev"))
				if !first {
					_, _ = io.WriteString(w, ",")
				}
				first = false
				_, _ = io.WriteString(w, `{"id":"`+id+`","docs":[`+list(id, `{"ok":`, `}`, func(rev string) bool { return rev == asked })+`]}`)
				return nil
			})
			_, _ = io.WriteString(w, `]}`)
			return
		}
		w.Header().Set("Content-Type", "multipart/mixed; boundary=o")
		open := r.URL.Query().Get("open_revs")
		_, _ = io.WriteString(w, list(strings.TrimPrefix(r.URL.Path, "/db/"), "--o\r\nContent-Type: application/json\r\n\r\n", "\r\n",
			func(rev string) bool { return strings.Contains(open, rev) })+"--o--")
	}, func(t *testing.T, p *peer) {
		t.Helper()
		for _, bulk = range []bool{true, false} {
			d, b, _ := p.bounded(100 << 20)
			var came, refused []string
			err := d.Fetch(t.Context(), endpoint.FetchOptions{Refused: func(id string, rev doc.Rev, err error) error {
				refused = append(refused, fmt.Sprintf("%s@%s %d", id, rev, fault.KindOf(err)))
				return nil
			}}, wanted, func(one *endpoint.Doc, _ endpoint.Contents) error {
				came = append(came, one.ID+"@"+one.Path.Rev().String())
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			wantRefused := map[string]bool{
				fmt.Sprintf("large@%s %d", rev(1, "b"), fault.DocumentTooLarge): true,
				fmt.Sprintf("odd@%s %d", rev(1, "d"), fault.DocValidation):      true,
			}
			if len(refused) != 2 || !wantRefused[refused[0]] || !wantRefused[refused[1]] || len(came) != 3 {
				t.Errorf("bulk %v: came %v, refused %v", bulk, came, refused)
			}
			if n := b.Used(); n != 0 {
				t.Errorf("%d bytes are taken for nothing", n)
			}
		}
	})
}

// While there is no memory a feed waits for it, and after a while the run ends with an
// error that says so and is worth another attempt. Others' memory is not touched.
func TestWaitsForMemory(t *testing.T) {
	long := row1("1", strings.Repeat("x", 500_000))
	with(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"results":[`+long+`],"last_seq":2}`)
	}, func(t *testing.T, p *peer) {
		t.Helper()
		d, _, shares := p.bounded(8 << 20)
		read := func() error {
			f, err := d.Changes(t.Context(), endpoint.ChangesQuery{})
			if err != nil {
				return err
			}
			defer f.Close()
			n, err := f.Next(t.Context(), make([]endpoint.Change, 1))
			if err == nil && n != 1 {
				t.Errorf("%d changes", n)
			}
			return err
		}
		other := shares.Owner("account ada").Hold()
		if err := other.Take(t.Context(), 1_900_000); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := read(); !endpoint.Retryable(err) || !strings.Contains(fault.Reason(err), "memory") || time.Since(began) < 5*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		time.AfterFunc(3*time.Second, other.Release)
		if err := read(); err != nil {
			t.Errorf("%v", err)
		}
		_ = pause.For(t.Context(), 5*time.Second)
	})
}
