package changes

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"divan/cluster"
	"divan/cluster/access"
	"divan/cluster/config"
	"divan/cluster/sequence"
	"divan/httpapi/apitest"
	"divan/httpapi/core"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// feedCall is a call with a query string without escapes, for the parsers.
func feedCall(t *testing.T, query string) *core.Call {
	t.Helper()
	c := &core.Call{Request: &http.Request{Header: http.Header{}}, Config: &config.Snapshot{}}
	c.Config.Chttpd.ChangesTimeout = time.Minute
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		c.Query = append(c.Query, core.Param{Name: name, Value: value})
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
		"limit=576460752303423487":           "0 576460752303423487 1m0s 0s 1",
		"since=now&descending=true&style=x":  "0 -1 1m0s 0s 1",
		"last-event-id=0&conflicts=yes&x=y":  "0 -1 1m0s 0s 1",
		"feed=normal&filter=&doc_ids=[1]&=1": "0 -1 1m0s 0s 1",
	} {
		p, err := parseChanges(feedCall(t, query))
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
		beyond    = "576460752303423488"
		malformed = "Malformed sequence supplied in 'since' parameter."
		invalid   = "Invalid heartbeat value. Expecting a positive integer value (in milliseconds)."
		positive  = "The heartbeat value should be a positive integer (in milliseconds)."
	)
	for query, want := range map[string]string{
		"feed=nope":         "Supported `feed` types: normal, continuous, live, longpoll, eventsource",
		"limit=x":           "The limit parameter should be a non-negative integer",
		"limit=-1":          "The limit value should be a non-negative integer",
		"limit=" + beyond:   "The limit value must not exceed 576460752303423487",
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
		_, err := parseChanges(feedCall(t, query))
		if !fault.Is(err, fault.BadRequest) || fault.Reason(err) != want {
			t.Errorf("%s: %v, want %s", query, err, want)
		}
	}
}

// TestLastEventIDOverridesSince is row 17 of api.md section 20.
func TestLastEventIDOverridesSince(t *testing.T) {
	for _, feed := range []string{"normal", "longpoll", "continuous", "eventsource"} {
		c := feedCall(t, "since=now&feed="+feed)
		c.Request.Header.Set("Last-Event-ID", "0")
		p, err := parseChanges(c)
		if err != nil || !p.query.Since.IsZero() {
			t.Errorf("%s: since %v, %v", feed, p.query.Since, err)
		}
	}
}

func TestChangeEncoder(t *testing.T) {
	rev, short := doc.Rev{Pos: 1, ID: "11111111111111111111111111111111"}, doc.Rev{Pos: 2, ID: "a\"b"}
	change := cluster.ChangeRow{ID: "c", Leaves: []doc.Rev{rev, short}, Deleted: true}
	const want = `,"id":"c","changes":[{"rev":"1-11111111111111111111111111111111"},{"rev":"2-a\"b"}],"deleted":true`
	if got := string(appendChange(nil, &change)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func BenchmarkChangeRow(b *testing.B) {
	row := cluster.ChangeRow{
		ID: "0123456789abcdef0123456789abcdef", Leaves: []doc.Rev{{Pos: 1, ID: "0123456789abcdef"}},
	}
	buf := make([]byte, 0, core.StreamBuffer)
	b.ReportAllocs()
	for b.Loop() {
		if buf = appendChange(buf, &row); len(buf) > core.StreamBuffer-1024 {
			buf = buf[:0]
		}
	}
}

// changesNode runs fn as the handler of a call on the database db of a node.
func changesNode(t *testing.T, fn core.Handler) {
	t.Helper()
	d := apitest.NodeDeps(t, "divan@127.0.0.1", nil)
	apitest.Must(t, d.Coordinator.CreateDB(t.Context(), "db", cluster.CreateOptions{}))
	a := core.New(d)
	called := false
	a.Mount([]core.Route{{Table: core.DBTable, Path: "/_probe", Access: access.Documents, Methods: core.Methods{Get: func(c *core.Call) error {
		called = true
		return fn(c)
	}}}})
	if w := apitest.Ask(t, a, "GET /db/_probe", "", "Authorization: Basic YWRtOnBhc3M="); !called {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
}

// TestFailedFeedEnds: a feed that has failed because the time of a copy was up
// says so and ends. That is no heartbeat, and not the end of its own time.
func TestFailedFeedEnds(t *testing.T) {
	for _, kind := range []feedKind{feedContinuous, feedLongpoll, feedEventSource} {
		synctest.Test(t, func(t *testing.T) {
			changesNode(t, func(c *core.Call) error {
				w := &changesWriter{c: c, ctx: t.Context(), p: &changesParams{feed: kind, heartbeat: time.Hour}, out: c.Stream("")}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				var err error
				w.feed, err = c.DB.Changes(ctx, cluster.ChangesQuery{Limit: cluster.NoLimit, Since: sequence.Now()})
				apitest.Must(t, err)
				defer w.feed.Close()
				_, err = c.DB.Update(t.Context(), cluster.UpdateOptions{NewEdits: true, User: c.User}, []shard.Edit{{ID: "d", Body: []byte("{}")}})
				apitest.Must(t, err)
				<-ctx.Done()
				if err := w.run(0); !fault.Is(err, fault.Timeout) {
					t.Errorf("kind %d: %v", kind, err)
				}
				return w.feed.Err()
			})
		})
	}
}

// TestFeedThatEndsWhileItOpens answers what there is.
func TestFeedThatEndsWhileItOpens(t *testing.T) {
	changesNode(t, func(c *core.Call) error {
		_, err := c.DB.Update(t.Context(), cluster.UpdateOptions{NewEdits: true, User: c.User}, []shard.Edit{{ID: "a", Body: []byte("{}")}})
		apitest.Must(t, err)
		w := &changesWriter{c: c, ctx: t.Context(), p: &changesParams{feed: feedLongpoll}}
		defer w.join()()
		c.API.EndFeeds()
		if err := w.open(cluster.ChangesQuery{Limit: cluster.NoLimit}); err != nil || !w.once {
			t.Fatalf("waits: %v, %v", !w.once, err)
		}
		defer w.feed.Close()
		if !w.feed.Next() || w.feed.Row().ID != "a" {
			t.Errorf("no row: %v", w.feed.Err())
		}
		return nil
	})
}

func TestFeedFields(t *testing.T) {
	object := `{"_id":"c","n":3,"a":{"b":{"x":null},"c":1},"t":[5,6]}`
	for fields, want := range map[string]string{
		"":                    object,
		`[]`:                  object,
		`[ "n" , "_id" ]`:     `{"n":3,"_id":"c"}`,
		`["a.b","t.1","q.a"]`: `{"a":{"b":{"x":null}},"t":{"1":6}}`,
	} {
		var text []byte
		if fields != "" {
			text = []byte(fields)
		}
		f, err := feedFields(text)
		if got := string(f.Append(nil, []byte(object))); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", fields, got, err, want)
		}
	}
	const notAList = "Selector error: fields must be JSON array"
	for text, want := range map[string]string{
		`{}`: notAList, `"a"`: notAList, `null`: notAList, `[1]`: "Invalid JSON for field spec: 1", `["a..b"]`: "Invalid field name: a..b",
	} {
		if _, err := feedFields([]byte(text)); !fault.Is(err, fault.BadRequest) || fault.Reason(err) != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestUpdatesTimeout: up to 60 it is seconds, above milliseconds, and never longer
// than the longest.
func TestUpdatesTimeout(t *testing.T) {
	for n, want := range map[int]time.Duration{
		0: 0, 1: time.Second, 60: time.Minute, 61: 61 * time.Millisecond, 30_000: 30 * time.Second, 60_000: time.Minute,
		300_000: time.Minute, math.MaxInt: time.Minute,
	} {
		if got := updatesTimeout(n, time.Minute); got != want {
			t.Errorf("%d: %v, want %v", n, got, want)
		}
	}
	if got := updatesTimeout(60, 200*time.Millisecond); got != 200*time.Millisecond {
		t.Errorf("cut to the longest: %v", got)
	}
}
