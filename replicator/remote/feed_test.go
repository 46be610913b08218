package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"divan/replicator/endpoint"
	"divan/replicator/spec"
	"divan/storage/fault"
	"divan/storage/pause"
)

const (
	revA = "1-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	revB = "2-bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

func row1(seq, id string) string {
	return fmt.Sprintf(`{"seq":%s,"id":%q,"changes":[{"rev":%q}]}`, seq, id, revA)
}

// Feeds of all kinds of servers are read, with any form of sequences and white space.
func TestChanges(t *testing.T) {
	for _, tc := range []struct{ name, text, want, last string }{
		{
			"CouchDB 1.x", "{\"results\":[\n" + row1("1", "a") + ",\n" + `{"seq":2,"id":"b","changes":[{"rev":"` + revB + `"},{"rev":"` + revA + `"}],"deleted":true}` + "\n],\n\"last_seq\":3}\n",
			"a@1[" + revA + "] b@2[" + revB + " " + revA + "]", "3",
		},
		{
			"CouchDB 3.x", "{\"results\":[\n" + row1(`"1-g1A"`, "a") + ",\n" + row1("null", "b") + "\n],\n\"last_seq\":\"2-g1B\",\"pending\":0}\n",
			`a@"1-g1A"[` + revA + "] b@[" + revA + "]", `"2-g1B"`,
		},
		{
			"BigCouch", `{"results":[` + row1(`[1,"g1AAA"]`, "a") + `],"last_seq":[2,"g,]B"]}`,
			`a@[1,"g1AAA"][` + revA + "]", `[2,"g,]B"]`,
		},
		{
			"other order and spaces", "\n\n { \"pending\" : 3, \"last_seq\" : \"x\" , \"results\" :\n\n [\r\n { \"changes\" : [ { \"rev\" : \"" + revA + "\" } ] , \"doc\":{\"a\":[\"}\\\"]\"]}, \"id\" : \"\\u00e4\\\"\\\\\" , \"seq\" : \"y\\u002b\" } ] } ",
			`ä"\@"y\u002b"[` + revA + "]", `"y\u002b"`,
		},
		{"empty", `{"results":[],"last_seq":0}`, "", "0"},
		{"nothing at all", `{}`, "", `"since"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			with(t, func(w http.ResponseWriter, _ *http.Request) {
				for i := range len(tc.text) {
					_, _ = w.Write([]byte(tc.text[i : i+1]))
					_ = http.NewResponseController(w).Flush()
				}
			}, func(t *testing.T, p *peer) {
				t.Helper()
				f, err := p.open(spec.Address{}).Changes(t.Context(), endpoint.ChangesQuery{Since: `"since"`, Batch: 100})
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				got, err := drain(t.Context(), f)
				if err != nil || got != tc.want || f.Last() != endpoint.Seq(tc.last) {
					t.Errorf("%s, last %s, %v; want %s, last %s", got, f.Last(), err, tc.want, tc.last)
				}
				if got := p.requests(); len(got) != 1 || got[0] != "GET /db/_changes?feed=normal&style=all_docs&since=since&heartbeat=10000&seq_interval=100" {
					t.Error(got)
				}
			})
		})
	}
}

// Sequences go back to the server as it takes them.
func TestSince(t *testing.T) {
	for since, want := range map[endpoint.Seq]string{
		"": "0", "17": "17", `"17-g1A+b"`: "17-g1A+b", `[17,"g1A"]`: `[17,"g1A"]`, `"\u00fc\""`: `ü"`,
	} {
		if got, err := url.QueryUnescape(sinceParam(since)); got != want || err != nil {
			t.Errorf("%s: %s, want %s", since, got, want)
		}
	}
}

// feedOf serves n changes, numbered from 1, as a feed of either kind.
func feedOf(n int, w http.ResponseWriter, r *http.Request) {
	var since int
	_, _ = fmt.Sscan(r.URL.Query().Get("since"), &since)
	normal := r.URL.Query().Get("feed") == "normal"
	var b bytes.Buffer
	if normal {
		b.WriteString("{\"results\":[\n")
	}
	for i := since + 1; i <= n; i++ {
		b.WriteString(row1(fmt.Sprint(i), fmt.Sprint("doc", i)))
		if normal && i < n {
			b.WriteString(",")
		}
		b.WriteString("\n")
	}
	if normal {
		fmt.Fprintf(&b, "],\n\"last_seq\":%d,\"pending\":0}\n", n)
	}
	_, _ = w.Write(b.Bytes())
	if !normal {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

// brittle is a connection that breaks after some bytes were read.
type brittle struct {
	net.Conn
	left int
}

func (b *brittle) Read(p []byte) (int, error) {
	if b.left <= 0 {
		_ = b.Close()
		return 0, errors.New("cut")
	}
	n, err := b.Conn.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// A feed whose connections break at random bytes gives every change, in order
// and once.
func TestChangesCut(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 1))
		continuous := seed%2 == 1
		const n = 200
		with(t, func(w http.ResponseWriter, r *http.Request) { feedOf(n, w, r) }, func(t *testing.T, p *peer) {
			t.Helper()
			p.wrap = func(c net.Conn) net.Conn { return &brittle{c, 400 + random.IntN(4000)} }
			f, err := p.open(spec.Address{}).Changes(t.Context(), endpoint.ChangesQuery{Continuous: continuous})
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			rows := make([]endpoint.Change, 1+random.IntN(20))
			for at := 0; at < n; {
				k, err := f.Next(t.Context(), rows)
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				for _, c := range rows[:k] {
					if at++; c.ID != fmt.Sprint("doc", at) {
						t.Fatalf("seed %d: %s is change %d", seed, c.ID, at)
					}
				}
			}
			if continuous {
				return
			}
			if k, err := f.Next(t.Context(), rows); k != 0 || !errors.Is(err, io.EOF) || f.Last() != "200" {
				t.Errorf("seed %d: end: %d %v %s", seed, k, err, f.Last())
			}
		})
	}
}

// A server may tell where its changes end before it tells of them: what is cut off
// behind that is asked for again.
func TestChangesCutBehindTheirEnd(t *testing.T) {
	for _, before := range []string{"", row1("1", "a") + ","} {
		asked := 0
		with(t, func(w http.ResponseWriter, r *http.Request) {
			asked++
			text := `{"last_seq":3,"results":[` + before
			if asked == 1 {
				w.Header().Set("Content-Length", fmt.Sprint(len(text)+100))
				_, _ = io.WriteString(w, text)
				return
			}
			_, _ = io.WriteString(w, `{"last_seq":3,"results":[`+row1("3", "c since "+r.URL.Query().Get("since"))+`]}`)
		}, func(t *testing.T, p *peer) {
			t.Helper()
			f, err := p.open(spec.Address{}).Changes(t.Context(), endpoint.ChangesQuery{})
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			want := "c since 0@3[" + revA + "]"
			if before != "" {
				want = "a@1[" + revA + "] c since 1@3[" + revA + "]"
			}
			if got, err := drain(t.Context(), f); err != nil || got != want || f.Last() != "3" {
				t.Errorf("%s, last %s, %v; want %s", got, f.Last(), err, want)
			}
		})
	}
}

// A server that sends long ids does not have as many of them held as there is space
// for, and none that no database would take.
func TestChangesLarge(t *testing.T) {
	size := maxRows / 2
	with(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"results":[`)
		for i := range 5 {
			_, _ = io.WriteString(w, row1(fmt.Sprint(i+1), strings.Repeat("x", size))+",")
		}
		_, _ = io.WriteString(w, `],"last_seq":5}`)
	}, func(t *testing.T, p *peer) {
		t.Helper()
		d := p.open(spec.Address{})
		f, err := d.Changes(t.Context(), endpoint.ChangesQuery{})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		rows := make([]endpoint.Change, 100)
		for _, want := range []int{2, 2, 1} {
			if n, err := f.Next(t.Context(), rows); n != want || err != nil {
				t.Errorf("%d changes, not %d: %v", n, want, err)
			}
		}
		if _, err := f.Next(t.Context(), rows); !errors.Is(err, io.EOF) || f.Last() != "5" {
			t.Errorf("%v, %s", err, f.Last())
		}
		size, d.client.options.Retries = maxRow, 0
		if f, err = d.Changes(t.Context(), endpoint.ChangesQuery{}); err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if n, err := f.Next(t.Context(), rows); n != 0 || !fault.Is(err, fault.Unavailable) {
			t.Errorf("a row that is too large: %d, %v", n, err)
		}
	})
}

// A feed that breaks without a change each time is given up.
func TestChangesBroken(t *testing.T) {
	for _, text := range []string{"", "{", `{"results":[`, `{"results":[]`, `{"results":[{]}`, "<html>", `{"results":[{"id":"a"}]}`, `{"results":[7]}`, `{"results":[{"error":"x","reason":"y"}]}`, `{"error":"x"}`} {
		with(t, func(w http.ResponseWriter, _ *http.Request) { answerWith(w, 200, text) }, func(t *testing.T, p *peer) {
			t.Helper()
			f, err := p.open(spec.Address{}).Changes(t.Context(), endpoint.ChangesQuery{})
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if got, err := drain(t.Context(), f); !endpoint.Retryable(err) || got != "" {
				t.Errorf("%q: %q, %v", text, got, err)
			}
		})
	}
}

// Signs of life keep a continuous feed open for as long as nothing happens;
// without them it is opened anew, where it was.
func TestChangesHeartbeat(t *testing.T) {
	for _, lively := range []bool{true, false} {
		with(t, func(w http.ResponseWriter, r *http.Request) {
			since := r.URL.Query().Get("since")
			if since == "0" {
				_, _ = io.WriteString(w, row1("1", "a")+"\n")
			}
			_ = http.NewResponseController(w).Flush()
			for i := 0; lively || since != "0"; i++ {
				if pause.For(r.Context(), 10*time.Second) != nil {
					return
				}
				if i == 59 {
					_, _ = io.WriteString(w, row1("2", "b"))
				}
				_, _ = io.WriteString(w, "\n")
				_ = http.NewResponseController(w).Flush()
			}
			<-r.Context().Done()
		}, func(t *testing.T, p *peer) {
			t.Helper()
			f, err := p.open(spec.Address{}).Changes(t.Context(), endpoint.ChangesQuery{Continuous: true, Heartbeat: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			rows := make([]endpoint.Change, 5)
			for _, id := range []string{"a", "b"} {
				if n, err := f.Next(t.Context(), rows); n != 1 || err != nil || rows[0].ID != id {
					t.Fatalf("%d %v %+v", n, err, rows[0])
				}
			}
			opened := len(p.requests())
			if want := map[bool]int{true: 1, false: 2}[lively]; opened != want {
				t.Errorf("lively %v: opened %d times", lively, opened)
			}
		})
	}
}

// A server that ends its feeds after a while is asked again, and not all the
// time; what it says at the end counts.
func TestChangesEndedByServer(t *testing.T) {
	with(t, func(w http.ResponseWriter, r *http.Request) {
		since := r.URL.Query().Get("since")
		_, _ = fmt.Fprintf(w, "\n{\"last_seq\":\"%s1\",\"pending\":0}\n", since)
	}, func(t *testing.T, p *peer) {
		t.Helper()
		f, err := p.open(spec.Address{}).Changes(t.Context(), endpoint.ChangesQuery{Continuous: true})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := f.Next(ctx, make([]endpoint.Change, 1)); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if got := len(p.requests()); got < 10 || got > 20 || f.Last() != endpoint.Seq(`"0`+strings.Repeat("1", got)+`"`) {
			t.Errorf("asked %d times, last %s", got, f.Last())
		}
	})
}

// What selects documents is sent as servers expect it.
func TestChangesFilters(t *testing.T) {
	const start = " /db/_changes?feed=normal&style=main_only&since=0&heartbeat=10000"
	for _, tc := range []struct {
		filter     endpoint.Filter
		noPost     bool
		want, body string
	}{
		{endpoint.Filter{HasIDs: true, DocIDs: []string{"a", `b"`}}, false, "POST" + start + "&filter=_doc_ids", `{"doc_ids":["a","b\""]}`},
		{endpoint.Filter{HasIDs: true}, false, "POST" + start + "&filter=_doc_ids", `{"doc_ids":[]}`},
		{endpoint.Filter{HasIDs: true, DocIDs: []string{"a"}}, true, "GET" + start + "&filter=_doc_ids&doc_ids=%5B%22a%22%5D", ""},
		{endpoint.Filter{Selector: []byte(`{"a":1}`)}, false, "POST" + start + "&filter=_selector", `{"selector":{"a":1}}`},
		{endpoint.Filter{Function: "d/ü", Query: [][2]string{{"since", "now"}, {"k", "a b"}, {"feed", "longpoll"}, {"filter", "_design"}}}, false, "GET" + start + "&filter=d%2F%C3%BC&k=a+b", ""},
	} {
		var body []byte
		with(t, func(w http.ResponseWriter, r *http.Request) {
			if tc.noPost && r.Method == http.MethodPost {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			body, _ = io.ReadAll(r.Body)
			feedOf(0, w, r)
		}, func(t *testing.T, p *peer) {
			t.Helper()
			f, err := p.open(spec.Address{}).Changes(t.Context(), endpoint.ChangesQuery{Filter: tc.filter, WinnerOnly: true})
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			got := p.requests()
			if got[len(got)-1] != tc.want || string(body) != tc.body {
				t.Errorf("%v %s, want %s %s", got, body, tc.want, tc.body)
			}
		})
	}
}

// Refusals of a feed say what they are.
func TestChangesRefused(t *testing.T) {
	for _, tc := range []struct {
		status int
		filter string
		want   fault.Kind
	}{
		{401, "", fault.Unauthorized},
		{403, "", fault.Forbidden},
		{404, "", fault.NoDatabase},
		{404, "d/f", fault.NotFound},
		{400, "", fault.BadRequest},
		{500, "", fault.Unavailable},
	} {
		with(t, func(w http.ResponseWriter, _ *http.Request) { answerWith(w, tc.status, `{"error":"e","reason":"r"}`) }, func(t *testing.T, p *peer) {
			t.Helper()
			_, err := p.open(spec.Address{}).Changes(t.Context(), endpoint.ChangesQuery{Filter: endpoint.Filter{Function: tc.filter}})
			if fault.KindOf(err) != tc.want {
				t.Errorf("%d: %v", tc.status, err)
			}
		})
	}
}

func TestPending(t *testing.T) {
	for _, tc := range []struct {
		since endpoint.Seq
		text  string
		want  int64
	}{
		{`"7-x"`, `{"results":[],"last_seq":"7-x","pending":12}`, 12},
		{`"7-x"`, `{"results":[` + row1("8", "a") + `],"last_seq":"8-x","pending":12}`, 13},
		{"7", `{"results":[],"last_seq":7}`, 10},
		{"", `{"results":[],"last_seq":0}`, 17},
		{`"7-x"`, `{"results":[],"last_seq":"7-x"}`, -1},
		{`[1,"x"]`, `{"results":[],"last_seq":"7-x","pending":null}`, -1},
		{"70", `{"results":[],"last_seq":17}`, -1},
	} {
		with(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/db/" {
				answerWith(w, 200, infoText)
				return
			}
			answerWith(w, 200, tc.text)
		}, func(t *testing.T, p *peer) {
			t.Helper()
			if got, err := p.open(spec.Address{}).Pending(t.Context(), tc.since); got != tc.want || err != nil {
				t.Errorf("%s %s: %d, %v; want %d", tc.since, tc.text, got, err, tc.want)
			}
		})
	}
}

// For any bytes that a server sends as changes: nothing breaks, and valid JSON of rows is read as
// it is.
func FuzzChanges(f *testing.F) {
	f.Add([]byte("{\"results\":[\n"+row1("1", "a")+",\n"+row1(`"x\"y"`, `b\u00e4`)+"\n],\n\"last_seq\":3,\"pending\":0}\n"), 3, false)
	f.Add([]byte("\n"+row1("[1,{}]", "a")+"\n\n{\"last_seq\":1}"), 1, true)
	f.Add([]byte(`{"results":[{"seq":1,"id":"a\\","changes":[{"rev":"1-x"}]}]}`), 2, false)
	f.Fuzz(func(t *testing.T, text []byte, step int, continuous bool) {
		r := &feed{q: endpoint.ChangesQuery{Continuous: continuous}}
		r.list = list{stream: new(client).stream(t.Context(), &stutter{text, max(1, step%7)}, maxRow), member: "results", other: r.member}
		var rows []endpoint.Change
		for {
			var c endpoint.Change
			took, err := r.row(&c, true)
			if err != nil {
				if len(r.list.buf) > 4*len(text)+2*streamStart {
					t.Errorf("a buffer of %d bytes for %d", len(r.list.buf), len(text))
				}
				if continuous || !errors.Is(err, io.EOF) {
					return
				}
				break
			}
			if took {
				rows = append(rows, c)
			}
		}
		var want struct {
			Results []struct {
				ID      string
				Changes []struct{ Rev string }
			}
		}
		if json.Unmarshal(text, &want) != nil || len(want.Results) != len(rows) {
			return // JSON of another form, or with members twice
		}
		for i, c := range rows {
			if c.ID != want.Results[i].ID && len(want.Results[i].ID) == len(c.ID) && !strings.Contains(c.ID, "\ufffd") {
				t.Errorf("%q, want %q", c.ID, want.Results[i].ID)
			}
		}
	})
}

// stutter gives a text in small pieces.
type stutter struct {
	text []byte
	step int
}

func (s *stutter) Read(p []byte) (int, error) {
	n := copy(p[:min(len(p), s.step)], s.text)
	s.text = s.text[n:]
	if len(s.text) == 0 {
		return n, io.EOF
	}
	return n, nil
}

func BenchmarkChanges(b *testing.B) {
	var text bytes.Buffer
	for i := range 1000 {
		seq := fmt.Sprintf(`"%d-g1AAAACbeJzLYWBgYMpgTmHgz8tPSTV0MDQy1zMAQsMckEQiQ1L9____szKYE5lygQLs5uaJxpaWSdg04DEmjwVIMjQAqf8Y5iWlJBkbGSRhU5wFAOUTKbs"`, i)
		text.WriteString(row1(seq, fmt.Sprintf("0123456789abcdef%08d", i)) + "\n")
	}
	b.SetBytes(int64(text.Len() / 1000))
	b.ReportAllocs()
	f := &feed{q: endpoint.ChangesQuery{Continuous: true}}
	f.list = list{stream: new(client).stream(b.Context(), &circle{text: text.Bytes()}, maxRow), other: f.member}
	var c endpoint.Change
	for b.Loop() {
		if took, err := f.row(&c, true); !took || err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

// circle gives a text again and again.
type circle struct {
	text []byte
	at   int
}

func (c *circle) Read(p []byte) (int, error) {
	n := copy(p, c.text[c.at:])
	c.at = (c.at + n) % len(c.text)
	return n, nil
}
