package core_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"divan/cluster/access"
	"divan/cluster/config"
	"divan/httpapi/apitest"
	"divan/httpapi/core"
	"divan/storage/fault"
)

func TestErrorsByKind(t *testing.T) {
	a := coreAPI(t, nil)
	c, _ := testCall(t, a, "GET /_up", "")
	for _, tc := range []struct {
		err    error
		status int
		name   string
		reason string
	}{
		{fault.New(fault.NotFound, "missing"), 404, "not_found", "missing"},
		{fault.New(fault.Conflict, "Document update conflict."), 409, "conflict", "Document update conflict."},
		{fault.New(fault.MissingRev, "missing_rev"), 409, "not_found", "missing_rev"},
		{fault.New(fault.Exists, "x"), 412, "file_exists", "x"},
		{fault.New(fault.Unavailable, "x"), 503, "service unavailable", "x"},
		{&fault.Error{Kind: fault.InvalidSelector, Code: "invalid_operator", Reason: "x"}, 400, "invalid_operator", "x"},
		{fmt.Errorf("deeper: %w", fault.New(fault.Gone, "x")), 410, "gone", "x"},
		{&core.MethodError{Allow: "GET,HEAD"}, 405, "method_not_allowed", "Only GET,HEAD allowed"},
		{errors.New("secret text"), 500, "internal_server_error", ""},
		{fault.New(fault.Internal, "secret text"), 500, "internal_server_error", ""},
		{fault.New(fault.Corruption, "secret text"), 500, "internal_server_error", ""},
	} {
		f := core.FailureOf(c, tc.err)
		if f.Status != tc.status || f.Name != tc.name || (tc.reason != "" && f.Reason != tc.reason) {
			t.Errorf("%v: got %+v", tc.err, f)
		}
		if strings.Contains(string(f.AppendJSON(nil)), "secret") {
			t.Errorf("%v: told to the client: %s", tc.err, f.AppendJSON(nil))
		}
		if (tc.status == 500) != (f.Ref != "") {
			t.Errorf("%v: ref %q", tc.err, f.Ref)
		}
	}
}

// TestFewLinesOfRefusals: a flood that is refused is not one of the log as well, and
// hides no failure.
func TestFewLinesOfRefusals(t *testing.T) {
	sink, logs := observer.New(zap.WarnLevel)
	d := apitest.FrontDeps(t, nil)
	d.Logger = zap.New(sink)
	a := core.New(d)
	var err error
	a.Mount([]core.Route{{Table: core.ServerTable, Path: "/_up", Access: access.Anyone, Methods: core.Methods{Get: func(*core.Call) error { return err }}}})
	ask := func(n, status int) {
		for range n {
			if w := apitest.Ask(t, a, "GET /_up", ""); w.Code != status {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
		}
	}
	err = fault.New(fault.Unavailable, "busy")
	ask(500, 503)
	if n := logs.FilterMessage("request refused").Len(); n == 0 || n > 20 || logs.Len() != n {
		t.Errorf("%d lines, %d of them of refusals", logs.Len(), n)
	}
	err = errors.New("broken")
	ask(30, 500)
	if n := logs.FilterMessage("request failed").Len(); n != 30 {
		t.Errorf("%d of 30 failures are in the log", n)
	}
}

func TestPanicIsA500(t *testing.T) {
	a := coreAPI(t, nil)
	a.Mount([]core.Route{{Table: core.ServerTable, Path: "/_up", Access: access.Anyone, Methods: core.Methods{Get: func(*core.Call) error { panic("boom") }}}})
	w := apitest.Ask(t, a, "GET /_up", "", "X-Couch-Request-ID: abc")
	if w.Code != 500 || !strings.Contains(w.Body.String(), "abc") || strings.Contains(w.Body.String(), "boom") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	if a.Stats.Panics.Value() != 1 {
		t.Error("the panic was not counted")
	}
}

func gzipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestBodies(t *testing.T) {
	a := coreAPI(t, config.Values{"chttpd": {"max_http_request_size": "200"}})
	long := strings.Repeat("x", 201)
	for _, tc := range []struct {
		name, body string
		headers    []string
		want, fail string
	}{
		{"plain", `{"a":1}`, nil, `{"a":1}`, ""},
		{"identity", `{"a":1}`, []string{"Content-Encoding: identity"}, `{"a":1}`, ""},
		{"gzip", gzipped(t, `{"a":1}`), []string{"Content-Encoding: gzip"}, `{"a":1}`, ""},
		{"no gzip", `{"a":1}`, []string{"Content-Encoding: gzip"}, "", "Request body is not properly gzipped."},
		{"cut gzip", gzipped(t, `{"a":1}`)[:20], []string{"Content-Encoding: gzip"}, "", "Request body is not properly gzipped."},
		{"a bomb", gzipped(t, long), []string{"Content-Encoding: gzip"}, "", "the request entity is too large"},
		{"deflate", `x`, []string{"Content-Encoding: deflate"}, "", "deflate is not a supported content encoding."},
		{"empty", "", []string{"Content-Length: 0"}, "", ""},
		{"none", "", nil, "", "Missing request body"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, _ := testCall(t, a, "POST /_dbs_info", tc.body, tc.headers...)
			if tc.body == "" {
				c.Request.ContentLength = 0
			}
			got, err := c.Body.ReadJSON()
			if fault.Reason(err) != tc.fail || string(got) != tc.want {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	if w := apitest.Ask(t, a, "POST /_dbs_info", long); w.Code != 413 || w.Header().Get("Connection") != "close" {
		t.Errorf("announced too long: got %d %v", w.Code, w.Header())
	}
	c, _ := testCall(t, a, "POST /_dbs_info", "x")
	c.Request.ContentLength, c.Request.Body = -1, io.NopCloser(strings.NewReader(long))
	if _, err := c.Body.ReadJSON(); !fault.Is(err, fault.RequestTooLarge) {
		t.Errorf("chunked and too long: %v", err)
	}
}

// TestBodiesInPieces: bodies of all lengths are what was sent, whether their length
// is known or not, and stay so while others are read.
func TestBodiesInPieces(t *testing.T) {
	a := coreAPI(t, nil)
	const piece = 1 << 20
	var want, got []string
	for i, length := range []int{1, 511, 512, 513, piece / 2, piece - 1, piece, piece + 1, 2*piece - 1, 2 * piece, 7*piece/2 + 3, 3} {
		sent := strings.Repeat(string(rune('a'+i)), length-1) + "."
		for _, known := range []bool{true, false} {
			c, _ := testCall(t, a, "POST /_dbs_info", "x")
			c.User.Name, c.User.Anonymous = "adm", false
			c.Request.ContentLength, c.Request.Body = -1, io.NopCloser(iotest.HalfReader(strings.NewReader(sent)))
			if known {
				c.Request.ContentLength = int64(length)
			}
			body, err := c.Body.ReadJSON()
			apitest.Must(t, err)
			want, got = append(want, sent), append(got, string(body))
			defer func() { // the body itself, when all were read
				if string(body) != sent {
					t.Errorf("a body of %d bytes has become another one", length)
				}
			}()
		}
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("a body of %d bytes: got %d", len(want[i]), len(got[i]))
		}
	}
}

// [httpd] counts where [chttpd] says nothing, as it does for other settings.
func TestJSONPSections(t *testing.T) {
	for _, tc := range []struct {
		values config.Values
		want   string
	}{
		{config.Values{"chttpd": {"allow_jsonp": "true"}}, "/* CouchDB */cb("},
		{config.Values{"httpd": {"allow_jsonp": "true"}}, "/* CouchDB */cb("},
		{config.Values{"httpd": {"allow_jsonp": "true"}, "chttpd": {"allow_jsonp": "false"}}, `{"error"`},
		{nil, `{"error"`},
	} {
		if w := apitest.Ask(t, coreAPI(t, tc.values), "GET /_nothing?callback=cb", ""); !strings.HasPrefix(w.Body.String(), tc.want) {
			t.Errorf("%v: %s", tc.values, w.Body)
		}
	}
}

func TestStreams(t *testing.T) {
	a := coreAPI(t, config.Values{"chttpd": {"allow_jsonp": "true"}})
	big := strings.Repeat("0123456789", core.StreamBuffer/10+1)
	late := fault.New(fault.BadRequest, "too late")
	for _, tc := range []struct {
		name, target string
		serve        func(s *core.Stream) error
		status       int
		body         string
	}{
		{"complete", "/_up", func(s *core.Stream) error { _, err := s.WriteString("ab"); return errors.Join(err, s.Close()) }, 200, "ab"},
		{"error before the first byte", "/_up", func(s *core.Stream) error { _, _ = s.WriteString("ab"); return late }, 400, `{"error":"bad_request","reason":"too late"}` + "\n"},
		{"error after it", "/_up", func(s *core.Stream) error {
			_, err := s.WriteString("ab")
			return errors.Join(err, s.Flush(), late)
		}, 200, "ab\n\n" + `{"error":"bad_request","reason":"too late"}` + "\n"},
		{"error after a full buffer", "/_up", func(s *core.Stream) error { _, err := s.WriteString(big); return errors.Join(err, late) }, 200, big + "\n\n" + `{"error":"bad_request","reason":"too late"}` + "\n"},
		{"buffered", "/_up?buffer_response=true", func(s *core.Stream) error { _, err := s.WriteString(big); return errors.Join(err, late) }, 400, `{"error":"bad_request","reason":"too late"}` + "\n"},
		{"large pieces between small ones", "/_up", func(s *core.Stream) error {
			_, err := s.WriteString("ab")
			for _, p := range []string{big, big, "cd", big} {
				_, failure := s.Write([]byte(p))
				err = errors.Join(err, failure)
			}
			return errors.Join(err, s.Close())
		}, 200, "ab" + big + big + "cd" + big},
		{"error after a large piece", "/_up", func(s *core.Stream) error { _, err := s.Write([]byte(big)); return errors.Join(err, late) }, 200, big + "\n\n" + `{"error":"bad_request","reason":"too late"}` + "\n"},
		{"large piece of a buffered answer", "/_up?buffer_response=true", func(s *core.Stream) error { _, err := s.Write([]byte(big)); return errors.Join(err, late) }, 400, `{"error":"bad_request","reason":"too late"}` + "\n"},
		{"callback", "/_up?callback=cb", func(s *core.Stream) error { _, err := s.WriteString("[]"); return errors.Join(err, s.Close()) }, 200, "/* CouchDB */cb([]);"},
		{"callback in an object", "/_up?callback=a.b_1[0]", func(s *core.Stream) error { _, err := s.WriteString("[]"); return errors.Join(err, s.Close()) }, 200, "/* CouchDB */a.b_1[0]([]);"},
		{"callback that is a script", "/_up?callback=alert(1)%2F%2F", func(s *core.Stream) error { return s.Close() }, 400, `{"error":"bad_request","reason":"invalid_callback"}` + "\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a.Mount([]core.Route{{Table: core.ServerTable, Path: "/_up", Access: access.Anyone, Methods: core.Methods{Get: func(c *core.Call) error {
				return tc.serve(c.Stream(""))
			}}}})
			w := apitest.Ask(t, a, "GET "+tc.target, "")
			if w.Code != tc.status || w.Body.String() != tc.body {
				t.Errorf("got %d %.80q, want %d %.80q", w.Code, w.Body, tc.status, tc.body)
			}
		})
	}
}

func TestStreamOfHeadStops(t *testing.T) {
	a := coreAPI(t, nil)
	writes, size := 0, 0
	a.Mount([]core.Route{{Table: core.ServerTable, Path: "/_up", Access: access.Anyone, Methods: core.Methods{Get: func(c *core.Call) error {
		s := c.Stream("")
		for range 1000 {
			writes++
			if _, err := s.Write(make([]byte, size)); err != nil {
				return err
			}
		}
		return s.Close()
	}}}})
	for _, size = range []int{1000, 2 * core.StreamBuffer} {
		writes = 0
		w := apitest.Ask(t, a, "HEAD /_up", "")
		if w.Code != 200 || w.Body.Len() != 0 || writes > 100 {
			t.Errorf("got %d, %d bytes after %d writes of %d", w.Code, w.Body.Len(), writes, size)
		}
	}
}

func TestUUIDFormats(t *testing.T) {
	u := [16]byte{0x01, 0x95, 0x2f, 0xd8, 0x36, 0x5a, 0x77, 0x12, 0x80, 0, 0, 0, 0, 0, 0, 1}
	for format, want := range map[string]string{
		"base_16": "01952fd8365a77128000000000000001", "": "01952fd8365a77128000000000000001",
		"rfc9562": "01952fd8-365a-7712-8000-000000000001",
	} {
		if got := core.UUIDAs(u, format); got != want {
			t.Errorf("%s: %s", format, got)
		}
	}
	if low, high := core.UUIDAs([16]byte{15: 1}, "base_36"), core.UUIDAs(u, "base_36"); len(low) != 25 || len(high) != 25 || low >= high {
		t.Errorf("base_36: %s, %s", low, high)
	}
}

// deadlines is a connection that remembers its deadlines.
type deadlines struct {
	http.ResponseWriter
	set []time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error {
	d.set = append(d.set, t)
	return nil
}

// TestDeadlinesOfABody: a body that comes at once has its deadline set once and
// lifted, for the answer may take as long as it likes; one that breaks off keeps
// it; without patience there is none.
func TestDeadlinesOfABody(t *testing.T) {
	for _, tc := range []struct {
		patience string
		body     io.Reader
		want     string
	}{
		{"300000", strings.NewReader(`{"a":1}`), "set lifted"},
		{"300000", iotest.OneByteReader(strings.NewReader(strings.Repeat("x", 5000))), "set lifted"},
		{"300000", io.MultiReader(strings.NewReader("{"), iotest.ErrReader(io.ErrUnexpectedEOF)), "set"},
		{"infinity", strings.NewReader(`{"a":1}`), ""},
	} {
		rate := "1024"
		if tc.patience == "infinity" {
			rate = "0"
		}
		c, w := testCall(t, coreAPI(t, config.Values{
			"couchdb": {"attachment_writer_timeout": tc.patience}, "chttpd": {"min_body_rate": rate},
		}), "POST /_dbs_info", "")
		c.User.Name = "ann"
		conn := &deadlines{ResponseWriter: w}
		core.AnswerTo(c, conn)
		c.Request.Body, c.Request.ContentLength = io.NopCloser(tc.body), -1
		_, err := c.Body.ReadAll(0)
		var words []string
		for _, at := range conn.set {
			word := "set"
			if at.IsZero() {
				word = "lifted"
			}
			words = append(words, word)
		}
		if got := strings.Join(words, " "); got != tc.want {
			t.Errorf("%s: %s, want %s (%v)", tc.patience, got, tc.want, err)
		}
	}
}

// TestGraceOfABody: an unauthenticated client has ten seconds to begin in earnest, others
// as long as is configured.
func TestGraceOfABody(t *testing.T) {
	for name, most := range map[string]time.Duration{"": 10 * time.Second, "ann": 30 * time.Second} {
		c, w := testCall(t, coreAPI(t, nil), "PUT /db/doc", "")
		c.User.Name = name
		conn := &deadlines{ResponseWriter: w}
		core.AnswerTo(c, conn)
		c.Request.Body, c.Request.ContentLength = io.NopCloser(strings.NewReader("{}")), 2
		began := time.Now()
		if _, err := c.Body.ReadAll(0); err != nil || len(conn.set) == 0 {
			t.Fatal(err, conn.set)
		}
		if due := conn.set[0].Sub(began); due < most || due > most+5*time.Second {
			t.Errorf("%q has %v", name, due)
		}
	}
}

// TestBodyOfNobody: an unauthenticated client may send little to the server itself.
func TestBodyOfNobody(t *testing.T) {
	a := coreAPI(t, nil)
	for _, c := range []struct {
		db, name string
		asked    int64
		bounded  bool
	}{{"", "", 0, true}, {"", "", 1 << 20, true}, {"", "ann", 1 << 20, false}, {"db", "", 1 << 20, false}} {
		call, _ := testCall(t, a, "POST /", "")
		call.DBName, call.User.Name = c.db, c.name
		if got := call.Body.Limit(c.asked); (got == 64<<10) != c.bounded {
			t.Errorf("to %q by %q: %d bytes", c.db, c.name, got)
		}
	}
}

// steady is a body of so many bytes, 500 each tenth of a second.
type steady struct{ left int }

// Read implements io.Reader.
func (s *steady) Read(p []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	<-time.After(100 * time.Millisecond)
	n := min(s.left, 500, len(p))
	s.left -= n
	return n, nil
}

// TestBodyOfNobodyInTime: a body that an unauthenticated client sends to the server itself
// has to be there within the grace, however fast it comes; one for a database may go on.
func TestBodyOfNobodyInTime(t *testing.T) {
	for db, goesOn := range map[string]bool{"": false, "db": true} {
		synctest.Test(t, func(t *testing.T) {
			c, w := testCall(t, coreAPI(t, nil), "POST /", "")
			c.DBName = db
			conn := &deadlines{ResponseWriter: w}
			core.AnswerTo(c, conn)
			c.Request.Body, c.Request.ContentLength = io.NopCloser(&steady{left: 30_000}), -1
			due := time.Now().Add(10 * time.Second)
			if _, err := c.Body.ReadAll(0); err != nil {
				t.Fatal(err)
			}
			later := slices.ContainsFunc(conn.set, func(at time.Time) bool { return at.After(due) })
			if len(conn.set) < 3 || later != goesOn {
				t.Errorf("to %q: %v, due %v", db, conn.set, due)
			}
		})
	}
}

// TestTurnOfBadHeader: a client that sends 64 KB that begin a gzip stream, and are none,
// has no turn while the rest of the body is waited for.
func TestTurnOfBadHeader(t *testing.T) {
	a := coreAPI(t, nil)
	head := append([]byte{0x1f, 0x8b, 8, 4 | 8, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, make([]byte, 0xffff)...) // extra field and name
	c, _ := testCall(t, a, "POST /_session", string(append(head, bytes.Repeat([]byte("n"), 1000)...)), "Content-Encoding: gzip")
	if _, err := c.Body.ReadAll(0); !fault.Is(err, fault.BadRequest) {
		t.Errorf("%v", err)
	}
	if n := core.Working(a); n != 0 {
		t.Errorf("%d turns are taken", n)
	}
}

// TestMemoryOfWholeAnswers: what is kept of answers until their end has the memory of
// bodies. One that finds none is sent as it is made.
func TestMemoryOfWholeAnswers(t *testing.T) {
	a := coreAPI(t, config.Values{"chttpd": {"max_body_memory": "8000000"}})
	total, sent := 0, false
	for range 10 {
		c, _ := testCall(t, a, "GET /_up?buffer_response=true", "")
		out := c.Stream("")
		for range 20 {
			if _, err := out.Write(make([]byte, 100_000)); err != nil {
				t.Fatal(err)
			}
			if sent = c.Response.Started(); sent {
				break
			}
			total += 100_000
		}
		if n := a.Memory.Used(); n < int64(total) {
			t.Fatalf("%d bytes are kept, %d counted", total, n)
		}
	}
	if !sent || total < 2_000_000 {
		t.Errorf("%d bytes were kept, the last answer was sent: %t", total, sent)
	}
}

// TestMemoryOfOneRequest: only what is held of an answer asks for a faster client, not the body that
// was read; and a handler that begins again has the body it has read, and nothing else, counted.
func TestMemoryOfOneRequest(t *testing.T) {
	a := coreAPI(t, config.Values{"chttpd": {"held_answer_time": "1", "min_answer_rate": "1024"}})
	c, _ := testCall(t, a, "POST /_session", strings.Repeat("x", 10_000))
	if _, err := c.Body.ReadAll(0); err != nil {
		t.Fatal(err)
	}
	body := a.Memory.Used()
	if rate := core.RateOf(c); body < 10_000 || rate != 1024 {
		t.Errorf("a body of %d bytes asks for %d bytes a second", body, rate)
	}
	for range 3 {
		if err := errors.Join(c.Memory.Hold(100_000), c.Memory.Take(1000)); err != nil {
			t.Fatal(err)
		}
		if rate := core.RateOf(c); rate != 100_000 || a.Memory.Used() != body+102_000 {
			t.Errorf("%d bytes a second, %d bytes beside the body", rate, a.Memory.Used()-body)
		}
		core.Restart(c)
	}
	if rate := core.RateOf(c); rate != 1024 || a.Memory.Used() != body {
		t.Errorf("%d bytes a second, %d bytes beside the body, when it begins again", rate, a.Memory.Used()-body)
	}
}
