package httpapi

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"divan/cluster"
	"divan/cluster/config"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

func TestRowEncoders(t *testing.T) {
	rev, short := mustRev(t, "1-11111111111111111111111111111111"), mustRev(t, "2-a\"b")
	for _, c := range []struct {
		row  shard.Row
		want string
	}{
		{shard.Row{ID: "a", Rev: rev}, `{"id":"a","key":"a","value":{"rev":"1-11111111111111111111111111111111"}`},
		{
			shard.Row{ID: "x\"\n", Rev: short, Deleted: true},
			`{"id":"x\"\n","key":"x\"\n","value":{"rev":"2-a\"b","deleted":true}`,
		},
	} {
		if got := string(appendDocRow(nil, &c.row)); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
	change := cluster.ChangeRow{ID: "c", Leaves: []doc.Rev{rev, short}, Deleted: true}
	const want = `,"id":"c","changes":[{"rev":"1-11111111111111111111111111111111"},{"rev":"2-a\"b"}],"deleted":true`
	if got := string(appendChange(nil, &change)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// feedCall is a call with a query string, for the parsers.
func feedCall(t *testing.T, query string) *call {
	t.Helper()
	c := &call{scratch: &scratch{}, r: &http.Request{Header: http.Header{}}, cfg: &config.Snapshot{}}
	c.cfg.Chttpd.ChangesTimeout = time.Minute
	if err := c.parseQuery(query); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestChangesParams(t *testing.T) {
	for query, want := range map[string]string{
		"":                                   "0 -1 1m0s 0s 1",
		"LIMIT=3&Feed=longpoll":              "1 3 1m0s 0s 1",
		"feed=live&timeout=250":              "2 -1 250ms 0s 1",
		"feed=continuous&timeout=99999999":   "2 -1 1m0s 0s 1",
		"feed=eventsource&heartbeat=true":    "3 -1 1m0s 1m0s 1",
		"feed=eventsource&heartbeat=1500":    "3 -1 1m0s 1.5s 1",
		"heartbeat=600000":                   "0 -1 1m0s 1m0s 1",
		"limit=1&limit=2&seq_interval=7":     "0 2 1m0s 0s 7",
		"timeout=99999999999999999&limit=0":  "0 0 1m0s 0s 1",
		"limit=576460752303423488":           "0 576460752303423488 1m0s 0s 1",
		"since=now&descending=true&style=x":  "0 -1 1m0s 0s 1",
		"last-event-id=0&conflicts=yes&x=y":  "0 -1 1m0s 0s 1",
		"feed=normal&filter=&doc_ids=[1]&=1": "0 -1 1m0s 0s 1",
	} {
		p, err := feedCall(t, query).parseChanges()
		if err != nil {
			t.Errorf("%s: %v", query, err)
			continue
		}
		got := fmt.Sprint(p.feed, p.query.Limit, p.timeout, p.heartbeat, p.seqInterval)
		if got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
}

func TestChangesParamsRefused(t *testing.T) {
	const (
		beyond    = "576460752303423489"
		malformed = "Malformed sequence supplied in 'since' parameter."
		invalid   = "Invalid heartbeat value. Expecting a positive integer value (in milliseconds)."
		positive  = "The heartbeat value should be a positive integer (in milliseconds)."
	)
	for query, want := range map[string]string{
		"feed=nope":         "Supported `feed` types: normal, continuous, live, longpoll, eventsource",
		"limit=x":           "The limit parameter should be a non-negative integer",
		"limit=-1":          "The limit value should be a non-negative integer",
		"limit=" + beyond:   "The limit value must not exceed 576460752303423488",
		"timeout=x":         "The timeout parameter should be a non-negative integer",
		"timeout=-1":        "The timeout value should be a non-negative integer",
		"heartbeat=0":       positive,
		"heartbeat=-5":      positive,
		"heartbeat=false":   invalid,
		"heartbeat=often":   invalid,
		"seq_interval=0":    "invalid_seq_interval",
		"seq_interval=x":    "invalid_seq_interval",
		"since=2":           malformed,
		"since=":            malformed,
		"since=NOW":         malformed,
		"last-event-id=3-a": malformed,
	} {
		_, err := feedCall(t, query).parseChanges()
		if !fault.Is(err, fault.BadRequest) || fault.Reason(err) != want {
			t.Errorf("%s: %v, want %s", query, err, want)
		}
	}
	o, err := parseDocOptions(feedCall(t, `open_revs=["1-a","2-b","1-a"]`).query)
	if want := []doc.Rev{mustRev(t, "1-a"), mustRev(t, "2-b")}; err != nil || !slices.Equal(o.open.list, want) {
		t.Errorf("a revision named twice: %v, %v", o.open.list, err)
	}
}

// What a client has may come in any order, and more than one of it be in the
// history of the document: the newest counts.
func TestKnownPos(t *testing.T) {
	path := doc.Path{Start: 5, IDs: []string{"e", "d", "c"}}
	for _, tc := range []struct {
		since []doc.Rev
		want  uint64
	}{
		{nil, 0},
		{[]doc.Rev{{Pos: 3, ID: "c"}, {Pos: 4, ID: "d"}, {Pos: 3, ID: "c"}}, 4},
		{[]doc.Rev{{Pos: 5, ID: "d"}, {Pos: 2, ID: "b"}, {Pos: 6, ID: "e"}, {Pos: 0, ID: "c"}}, 0},
		{[]doc.Rev{{Pos: 5, ID: "e"}}, 5},
	} {
		if got := (docStyle{attachments: true, since: tc.since}).knownPos(path); got != tc.want {
			t.Errorf("%v: %d, want %d", tc.since, got, tc.want)
		}
	}
}

// TestLastEventIDOverridesSince is row 17 of api.md section 20.
func TestLastEventIDOverridesSince(t *testing.T) {
	for _, feed := range []string{"normal", "longpoll", "continuous", "eventsource"} {
		c := feedCall(t, "since=now&feed="+feed)
		c.r.Header.Set("Last-Event-ID", "0")
		p, err := c.parseChanges()
		if err != nil || !p.query.Since.IsZero() {
			t.Errorf("%s: since %v, %v", feed, p.query.Since, err)
		}
	}
}

func TestDocOptions(t *testing.T) {
	for query, want := range map[string]bool{
		"revs=true":            true,
		"revs=true&revs=false": true,
		"revs=false&revs=true": true,
		"revs=TRUE":            false,
		"revs=1":               false,
		"":                     false,
	} {
		o, err := parseDocOptions(feedCall(t, query).query)
		if err != nil || o.revs != want {
			t.Errorf("%s: %v, %v", query, o.revs, err)
		}
	}
	for query, want := range map[string]string{
		"rev=":             "Invalid rev format",
		"rev=3":            "Invalid rev format",
		"open_revs=x":      "invalid UTF-8 JSON",
		"open_revs={}":     "Invalid list of revisions",
		"open_revs=[1]":    "Invalid rev format",
		`atts_since=["x"]`: "Invalid rev format",
		"w=x":              "The `w` value should be a positive integer.",
		"r=0":              "The `r` value should be a positive integer.",
	} {
		if _, err := parseDocOptions(feedCall(t, query).query); fault.Reason(err) != want {
			t.Errorf("%s: %v, want %s", query, err, want)
		}
	}
}

func TestIfNoneMatch(t *testing.T) {
	for header, want := range map[string]bool{
		`"1-a"`:          true,
		`W/"1-a"`:        true,
		`"x", "1-a"`:     true,
		`"x","1-a"`:      true,
		`1-a`:            false,
		`*`:              false,
		`"1-b"`:          false,
		``:               false,
		`"x", W/"1-a" `:  true,
		`"x, \"1-a\", y`: false,
	} {
		c := feedCall(t, "")
		c.r.Header.Set("If-None-Match", header)
		if got := c.etagMatches(`"1-a"`); got != want {
			t.Errorf("%s: %v", header, got)
		}
	}
}

func TestEscapedLikeCouchDB(t *testing.T) {
	for in, want := range map[string]string{
		`"q"#?%&:,=@`:      `%22q%22%23%3F%25%26:%2C%3D%40`,
		`a.b-c_d~e`:        `a.b-c_d%7Ee`,
		`a!b$c'd(e)f*g;h=`: `a%21b%24c%27d%28e%29f%2Ag%3Bh%3D`,
		`über/€ +`:         `%C3%BCber%2F%E2%82%AC%20%2B`,
	} {
		if got := string(appendEscaped(nil, in)); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func TestParseDestination(t *testing.T) {
	for header, want := range map[string]string{
		"dst":                "dst 0-",
		"to%2Fthe%20copy":    "to/the copy 0-",
		"d?rev=1-abc":        "d 1-abc",
		"_design/c?x=2-abc":  "_design/c 2-abc",
		"?rev=1-abc":         " 1-abc",
		"":                   "Destination header is mandatory for COPY.",
		"http://h/db/x":      "Destination URL must be relative.",
		"d?rev=x":            "Invalid rev format",
		"%zz":                "invalid_url_encoding",
		"with+plus?rev=1-ab": "with plus 1-ab",
	} {
		id, rev, err := parseDestination(header, true)
		got := id + " " + rev.String()
		if err != nil {
			got = fault.Reason(err)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", header, got, want)
		}
	}
}

func BenchmarkDocRow(b *testing.B) {
	row := shard.Row{ID: "0123456789abcdef0123456789abcdef", Rev: doc.Rev{Pos: 1, ID: "0123456789abcdef"}}
	buf := make([]byte, 0, streamBuffer)
	b.ReportAllocs()
	for b.Loop() {
		if buf = appendDocRow(buf, &row); len(buf) > streamBuffer-1024 {
			buf = buf[:0]
		}
	}
}

func BenchmarkChangeRow(b *testing.B) {
	row := cluster.ChangeRow{
		ID: "0123456789abcdef0123456789abcdef", Leaves: []doc.Rev{{Pos: 1, ID: "0123456789abcdef"}},
	}
	buf := make([]byte, 0, streamBuffer)
	b.ReportAllocs()
	for b.Loop() {
		if buf = appendChange(buf, &row); len(buf) > streamBuffer-1024 {
			buf = buf[:0]
		}
	}
}

func BenchmarkAppendDoc(b *testing.B) {
	body := make([]byte, 0, 1100)
	body = append(body, `{"text":"`...)
	for range 1000 {
		body = append(body, 'x')
	}
	body = append(body, `"}`...)
	d := &shard.Doc{ID: "0123456789abcdef", Rev: doc.Rev{Pos: 1, ID: "0123456789abcdef"}, Body: body}
	buf := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		buf = docStyle{}.appendDoc(buf[:0], d)
	}
}
