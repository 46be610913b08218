package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/term"
)

// sides are two servers.
type sides struct {
	from, to *client
	source   string // URL of from
	args     []string
}

func newSides(t *testing.T) *sides {
	t.Helper()
	from := startServer(t, adminEnviron(), "--data", t.TempDir())
	to := startServer(t, adminEnviron(), "--data", t.TempDir())
	s := &sides{from: newClient(t, from.address), to: newClient(t, to.address)}
	s.source = s.from.base
	s.args = []string{"import", s.from.base, "--to", s.to.base, "--parallel", "1"}
	return s
}

// bring runs an import and returns its output without what differs from run to
// run: addresses, versions, how long it took.
func (s *sides) bring(t *testing.T, want int, more ...string) string {
	t.Helper()
	status, out := run(t, nil, append(s.args, more...)...)
	if status != want {
		t.Errorf("exit status %d, want %d\n%s", status, want, out)
	}
	return s.plain(out)
}

func (s *sides) plain(out string) string {
	out = strings.ReplaceAll(out, strings.TrimPrefix(s.from.base, "http://adm:pass@"), "OLD")
	out = strings.ReplaceAll(out, strings.TrimPrefix(s.to.base, "http://adm:pass@"), "NEW")
	out = regexp.MustCompile(` in [0-9.]+m?s`).ReplaceAllString(out, " in T")
	return regexp.MustCompile(`Divan [^)\n]+\)`).ReplaceAllString(out, "Divan V)")
}

// sameText shows where two texts begin to differ.
func sameText(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

const leftBehind = `
Left behind:
  documents that do not replicate (_local/…), among them the checkpoints of clients
  server administrators and other settings (GET /_node/_local/_config shows them)
  _global_changes: the server makes its own
`

// TestImport moves a little of everything.
func TestImport(t *testing.T) {
	t.Parallel()
	s := newSides(t)
	c := s.from
	c.want(t, "PUT", "/pond", "", 201)
	c.want(t, "PUT", "/swamp%2F1%2B2?partitioned=true&q=3", "", 201)
	c.want(t, "PUT", "/pond/_security", `{"admins":{"names":["joe"],"roles":[]},"members":{"names":[],"roles":["fish"]}}`, 200)
	c.want(t, "PUT", "/pond/_revs_limit", "77", 200)
	c.want(t, "PUT", "/pond/_purged_infos_limit", "88", 200)
	c.want(t, "POST", "/pond/_bulk_docs", `{"new_edits":false,"docs":[
		{"_id":"torn","_rev":"2-b","_revisions":{"start":2,"ids":["b","a"]},"side":"b"},
		{"_id":"torn","_rev":"2-c","_revisions":{"start":2,"ids":["c","a"]},"side":"c"},
		{"_id":"gone","_rev":"3-d","_deleted":true},
		{"_id":"übung/1 2+3","_rev":"1-e","_attachments":{"a b.txt":{"content_type":"text/plain","data":"aGVsbG8="}}}]}`, 201)
	// Had the design document come first, it would refuse these.
	c.want(t, "PUT", "/pond/_design/strict", `{"validate_doc_update":"function (n) { throw({forbidden: 'no'}); }"}`, 201)
	c.want(t, "PUT", "/pond/_local/mark", `{}`, 201)
	c.want(t, "PUT", "/swamp%2F1%2B2/x:1", `{}`, 201)
	large := incompressible(7, 2_000_000)
	if status, answer, err := c.do("PUT", "/swamp%2F1%2B2/x:2/large", "image/png", large); status != 201 || err != nil {
		t.Fatalf("%d %s %v", status, answer, err)
	}
	c.want(t, "PUT", "/_users/org.couchdb.user:joe", `{"name":"joe","type":"user","roles":["fish"],"password":"secret"}`, 201)
	sameText(t, s.bring(t, 0), `OLD: 3 databases, 8 documents (Divan V)
_users: 1 revision, 232 B in T
pond: 5 revisions, 101 B in T
swamp/1+2: 2 revisions, 2.0 MB in T

3 databases with 7 documents, and 1 deleted, at OLD.
As many are at NEW.
`+leftBehind)
	for _, path := range []string{
		"/pond/torn?rev=2-b&revs=true", "/pond/torn?conflicts=true&revs=true", "/pond/gone?rev=3-d&revs=true",
		"/pond/%C3%BCbung%2F1%202%2B3/a%20b.txt", "/pond/_security", "/pond/_revs_limit", "/pond/_purged_infos_limit",
		"/pond/_design/strict", "/swamp%2F1%2B2/x:2?att_encoding_info=true", "/_users/org.couchdb.user:joe",
	} {
		sameText(t, s.to.want(t, "GET", path, "", 200), c.want(t, "GET", path, "", 200))
	}
	if _, got, err := s.to.do("GET", "/swamp%2F1%2B2/x:2/large", "", nil); err != nil || string(got) != string(large) {
		t.Errorf("%d bytes of the attachment, %v", len(got), err)
	}
	var about struct {
		Props   struct{ Partitioned bool }
		Cluster struct{ Q int }
	}
	if _, err := s.to.call("GET", "/swamp%2F1%2B2", nil, &about); err != nil || !about.Props.Partitioned || about.Cluster.Q != 3 {
		t.Errorf("%+v, %v", about, err)
	}
	s.to.want(t, "GET", "/pond/_local/mark", "", 404)
	joe := *s.to
	joe.base = strings.Replace(joe.base, "adm:pass", "joe:secret", 1)
	joe.want(t, "GET", "/pond/torn", "", 200)

	again := s.bring(t, 0)
	for _, db := range []string{"_users", "pond", "swamp/1+2"} {
		if !strings.Contains(again, "\n"+db+": nothing new\n") {
			t.Errorf("%s in a second run: %s", db, again)
		}
	}
}

// TestImportRefused has a target that does not take everything.
func TestImportRefused(t *testing.T) {
	t.Parallel()
	s := newSides(t)
	for _, c := range []*client{s.from, s.to} {
		c.want(t, "PUT", "/pond", "", 201)
	}
	s.to.want(t, "PUT", "/split?partitioned=true", "", 201)
	s.from.want(t, "PUT", "/split", "", 201)
	for i := range 30 {
		s.from.want(t, "PUT", fmt.Sprintf("/pond/doc%02d", i), fmt.Sprintf(`{"n":%d}`, i), 201)
	}
	s.to.want(t, "PUT", "/pond/_design/strict", `{"validate_doc_update":
		"function (doc) { if (doc.n >= 5) throw({forbidden: 'too many'}); }"}`, 201)
	out := s.bring(t, 1)
	for _, want := range []string{
		"\npond: 5 revisions, 35 B in T, 25 refused\n",
		"\nsplit: failed: a database of this name is on NEW already, and only one of the two is partitioned\n",
		"\nNot as many are at NEW in:\n     documents   deleted   here   deleted   database\n            30         0      6         0   pond\n",
		"\nNot brought, or not to the end:\n  split: a database of this name",
		"\nRefused by NEW:\n  pond: doc05 1-", ": too many\n", "\n  pond: and 5 more\n",
		"\ndivan: not everything is there: 1 database failed, 25 revisions refused\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	// A second run looks at them again.
	s.args = append(s.args, "--exclude", "sp*")
	out = s.bring(t, 1)
	if !strings.Contains(out, "\npond: 0 revisions, 0 B in T, 25 refused\n") || !strings.HasSuffix(out, "\ndivan: not everything is there: 25 revisions refused\n") {
		t.Errorf("second run: %s", out)
	}
	s.to.want(t, "DELETE", "/pond/_design/strict?rev="+revOf(t, s.to, "/pond/_design/strict"), "", 200)
	if out = s.bring(t, 0); !strings.Contains(out, "\npond: 25 revisions, ") {
		t.Errorf("third run: %s", out)
	}
}

// revOf returns the revision of a document.
func revOf(t *testing.T, c *client, path string) string {
	t.Helper()
	var d struct {
		Rev string `json:"_rev"`
	}
	if _, err := c.call("GET", path, nil, &d); err != nil || d.Rev == "" {
		t.Fatalf("%s: %+v %v", path, d, err)
	}
	return d.Rev
}

// TestImportDifferences looks without writing.
func TestImportDifferences(t *testing.T) {
	t.Parallel()
	s := newSides(t)
	c := s.from
	c.want(t, "PUT", "/pond", "", 201)
	for _, doc := range []struct{ name, text string }{
		{"erlang", `{"language":"erlang","views":{"v":{"map":"fun({Doc}) -> ok end."}}}`},
		{"old", `{"views":{"v":{"map":"function (doc) { emit(doc.toSource(), Array.map([], f)); }"}},
			"filters":{"f":"function (doc) { for each (var x in doc) {} }"},"indexes":{"fine":{"index":"function () {}"},"odd":{"index":"function () {}","analyzer":"klingon"},"text":{"index":"function ( {}"}}}`},
		{"wide", `{"views":{"v":{"map":"function (doc) { emit(1, 1); }","reduce":"function () { return 'x'.repeat(3000); }"},
			"n":{"map":"function (doc) { emit(1, 1); }","reduce":"_count"}}}`},
	} {
		c.want(t, "PUT", "/pond/_design/"+doc.name, doc.text, 201)
	}
	c.want(t, "PUT", "/pond/doc", `{}`, 201)
	c.want(t, "GET", "/pond/_design/wide/_view/v", "", 200)
	c.want(t, "PUT", "/_replicator/_design/_replicator", `{}`, 201)
	c.want(t, "PUT", "/_replicator/job", `{"source":"http://127.0.0.1:1/a","target":"http://127.0.0.1:1/b"}`, 201)
	sameText(t, s.bring(t, 0, "--dry-run", "--databases", "p*", "--databases", "_*"), `OLD: 2 databases, 5 documents (Divan V)
_users: 1 document, 0 deleted
pond: 4 documents, 0 deleted

2 databases with 5 documents, and 0 deleted, at OLD.

Not as many are at NEW in:
     documents   deleted   here   deleted   database
             4         0      0         0   pond

Different here:
  pond: _design/erlang: its language is erlang: its functions do not run here
  pond: _design/old: its full-text index odd is not built here: no_such_analyzer
  pond: _design/old: views.v.map uses toSource(), which the JavaScript here does not have
  pond: _design/old: views.v.map uses functions of arrays as members of Array, which the JavaScript here does not have
  pond: _design/wide: views.v.reduce gives 3002 bytes; the limit is 5000 (reduce_limit_threshold)

Fails at the source as well:
  pond: _design/old: filters.f does not compile: SyntaxError: expecting '(' (function (doc) { for each (var x in doc) {} })
  pond: _design/old: indexes.text.index does not compile: SyntaxError: expecting ',' (function ( {})
`+leftBehind+`  _replicator: 1 document. They start to run as soon as they are here: end them at the source, then run this command again with --replications

Nothing was written.
`)
	s.to.want(t, "GET", "/pond", "", 404)
}

// load writes n documents.
func (c *client) load(t *testing.T, db, prefix string, n int) {
	t.Helper()
	for n > 0 {
		var body struct {
			Docs []map[string]string `json:"docs"`
		}
		for range min(n, 1000) {
			n--
			body.Docs = append(body.Docs, map[string]string{"_id": fmt.Sprintf("%s%06d", prefix, n), "text": strings.Repeat("word ", 100)})
		}
		if status, err := c.call("POST", "/"+db+"/_bulk_docs", body, nil); status != 201 || err != nil {
			t.Fatal(status, err)
		}
	}
}

// count is how many documents a database has, 0 when there is none.
func (c *client) count(db string) int {
	var info struct {
		Documents int `json:"doc_count"`
	}
	_, _ = c.call("GET", "/"+db, nil, &info) // not there yet
	return info.Documents
}

// TestImportInterrupted goes on where the first run ended.
func TestImportInterrupted(t *testing.T) {
	t.Parallel()
	s := newSides(t)
	s.from.want(t, "PUT", "/pond", "", 201)
	const total = 30_000
	s.from.load(t, "pond", "d", total)
	p := launch(t, nil, s.args...)
	eventually(t, "some documents have come", func() bool { return s.to.count("pond") > 0 })
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	status := p.wait()
	if out := p.output(); status != 1 || !strings.Contains(out, "\npond: interrupted after ") ||
		!strings.HasSuffix(out, "\ndivan: interrupted with 1 of 2 databases done; the same command goes on where this one ended\n") {
		t.Fatalf("exit status %d\n%s", status, out)
	}
	out := s.bring(t, 0)
	m := regexp.MustCompile(`\npond: ([0-9,]+) revisions, `).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("nothing was left to bring\n%s", out)
	}
	if n, err := strconv.Atoi(strings.ReplaceAll(m[1], ",", "")); err != nil || n == 0 || n >= total {
		t.Errorf("the second run brought %s of %d documents", m[1], total)
	}
	if n := s.to.count("pond"); n != total {
		t.Errorf("%d of %d documents are there", n, total)
	}
}

// TestImportContinuous follows the source, a new database too. What users write
// does not pass a validation function that an administrator is asked by.
func TestImportContinuous(t *testing.T) {
	t.Parallel()
	s := newSides(t)
	s.from.want(t, "PUT", "/_users/org.couchdb.user:joe", `{"name":"joe","type":"user","roles":[],"password":"secret"}`, 201)
	s.from.want(t, "PUT", "/pond", "", 201)
	s.from.want(t, "PUT", "/pond/_security", "{}", 200)
	s.from.load(t, "pond", "a", 100)
	s.from.want(t, "PUT", "/pond/_design/view", `{"views":{"v":{"map":"function (doc) { emit(1, 1); }"}}}`, 201)
	s.from.want(t, "PUT", "/pond/_design/strict", `{"validate_doc_update":"function (n, o, u) { if (u.name !== 'joe') throw({forbidden: 'no'}); }"}`, 201)
	p := launch(t, nil, append(s.args, "--continuous")...)
	eventually(t, "the first pass is done", func() bool {
		return strings.Contains(s.plain(p.output()), "\nFollowing OLD. Interrupt (Ctrl-C) at the cut-over.\n")
	})
	joe := *s.from
	joe.base = strings.Replace(joe.base, "adm:pass", "joe:secret", 1)
	joe.load(t, "pond", "b", 100)
	s.from.want(t, "PUT", "/lake", "", 201)
	s.from.load(t, "lake", "c", 50)
	eventually(t, "the rest has come", func() bool { return s.to.count("pond") == 201 && s.to.count("lake") == 50 })
	for db, docs := range map[string]int{"pond": 200, "lake": 50} { // an interruption before that looks at them again
		eventually(t, "that is noted for "+db, func() bool {
			var local struct {
				Rows []struct {
					Doc struct {
						History []struct {
							Written int `json:"docs_written"`
						}
					}
				}
			}
			status, err := s.to.call("GET", "/"+db+"/_local_docs?include_docs=true", nil, &local)
			written := 0
			for _, row := range local.Rows {
				for _, session := range row.Doc.History {
					written += session.Written
				}
			}
			return err == nil && status == 200 && written >= docs
		})
	}
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	status := p.wait()
	_, report, _ := strings.Cut(s.plain(p.output()), "cut-over.\n")
	if status != 0 {
		t.Errorf("exit status %d", status)
	}
	sameText(t, report, `
3 databases with 254 documents, and 0 deleted, at OLD.
As many are at NEW.

No database is behind.
`+leftBehind+`  pond: _design/strict comes with a run without --continuous: it would judge what is still to come
`)
	joe.load(t, "pond", "c", 5)
	if out := s.bring(t, 0); !strings.Contains(out, "\npond: 6 revisions, ") {
		t.Errorf("the last run:\n%s", out)
	}
	s.to.want(t, "GET", "/pond/_design/strict", "", 200)
}

// TestImportBehind loses its target before the cut-over.
func TestImportBehind(t *testing.T) {
	t.Parallel()
	from := startServer(t, adminEnviron(), "--data", t.TempDir())
	to := startServer(t, adminEnviron(), "--data", t.TempDir())
	s := &sides{from: newClient(t, from.address), to: newClient(t, to.address)}
	s.args = []string{"import", s.from.base, "--to", s.to.base, "--continuous"}
	s.from.want(t, "PUT", "/pond", "", 201)
	s.from.load(t, "pond", "a", 100)
	p := launch(t, nil, s.args...)
	eventually(t, "the first pass is done", func() bool { return strings.Contains(p.output(), "\nFollowing ") })
	to.stop()
	s.from.load(t, "pond", "b", 7)
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	status := p.wait()
	out := s.plain(p.output())
	if status != 1 || !strings.Contains(out, "\nBehind the source:\n  pond: 7 changes\n") ||
		!strings.Contains(out, "\nNot brought, or not to the end:\n  pond: Get \"http://NEW/pond\": dial tcp NEW: connect: connection refused\n") {
		t.Errorf("exit status %d\n%s", status, out)
	}
}

// terminalState is how a terminal is set.
func terminalState(t *testing.T, tty *os.File) (state *term.State) {
	t.Helper()
	raw, err := tty.SyscallConn() // Fd would make reads block for good
	if err != nil {
		t.Fatal(err)
	}
	controlErr := raw.Control(func(fd uintptr) { state, err = term.GetState(int(fd)) })
	if err := errors.Join(controlErr, err); err != nil {
		t.Fatal(err)
	}
	return state
}

// freshTerminal is how a terminal is set that no program has changed.
func freshTerminal(t *testing.T) *term.State {
	t.Helper()
	tty, other, err := pty.Open()
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		t.Skip("this machine has no terminals: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(other.Close(), tty.Close()) }() // nothing was written
	return terminalState(t, tty)
}

// TestImportTerminal types a password, and sees bars. The program may be at its prompt
// before anything is asked of its terminal.
func TestImportTerminal(t *testing.T) {
	t.Parallel()
	before := freshTerminal(t)
	s := newSides(t)
	s.from.want(t, "PUT", "/pond", "", 201)
	s.from.load(t, "pond", "d", 5000)
	cmd := exec.CommandContext(context.Background(), os.Args[0], "import", strings.Replace(s.from.base, ":pass@", "@", 1), "--to", s.to.base)
	cmd.Env = []string{asProgram + "=1", "PATH=" + os.Getenv("PATH")}
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 120})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tty.Close() }()
	prompt := "Password of adm at " + strings.TrimPrefix(s.from.base, "http://adm:pass@") + ": "
	start := make([]byte, len(prompt))
	if _, err := io.ReadFull(tty, start); err != nil || string(start) != prompt {
		t.Fatalf("%q, %v", start, err)
	}
	eventually(t, "the terminal shows nothing", func() bool { return !reflect.DeepEqual(before, terminalState(t, tty)) })
	if _, err := io.WriteString(tty, "pass\n"); err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(tty) // the end of a terminal is an error
	out := string(text)
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for _, want := range []string{`\npond  +\[[=>-]+\] +[0-9]+ %  [0-9,]+ of 5,000  `, `all documents  +\[[=>-]+\] +100 %  5,001 of 5,001\r\n`, `\npond: 5,000 revisions, .* in `, `\nAs many are at `} {
		if !regexp.MustCompile(want).MatchString(strings.ReplaceAll(out, "\x1b[J", "\n")) {
			t.Errorf("no %s in\n%q", want, out)
		}
	}
	if strings.Contains(out, "pass") {
		t.Error("the password is shown")
	}
}

// TestImportUsage looks for one clear line.
func TestImportUsage(t *testing.T) {
	t.Parallel()
	p := startServer(t, adminEnviron(), "--data", t.TempDir())
	c := newClient(t, p.address)
	c.want(t, "PUT", "/_users/org.couchdb.user:joe", `{"name":"joe","type":"user","roles":[],"password":"secret"}`, 201)
	environ := []string{"DIVAN_SOURCE_USER=joe", "DIVAN_SOURCE_PASSWORD=secret"}
	for _, tc := range []struct {
		args []string
		want string
	}{
		{nil, "accepts 1 arg(s), received 0\nUsage: divan import URL [flags]\nMore: divan import --help"},
		{[]string{"ftp://adm:pass@x"}, "the URL of a server must look like http://admin:password@host:5984"},
		{[]string{"x", "--continuous", "--dry-run"}, "--continuous goes with neither --replications nor --dry-run"},
		{[]string{"http://" + p.address}, "the source: joe is no server administrator of " + p.address},
		{[]string{"http://joe@" + p.address}, "the source: joe is no server administrator of " + p.address},
		{[]string{"http://adm@" + p.address}, "the source: " + p.address + " does not take the name and the password"},
		{[]string{"http://adm:wrong@" + p.address}, "the source: " + p.address + " does not take the name and the password"},
		{[]string{c.base, "--to", c.base}, "the source and the target are the same server"},
		{[]string{c.base, "--to", p.address}, "the target: " + p.address + " wants the name and the password of a server administrator"},
	} {
		status, out := run(t, environ, append([]string{"import"}, tc.args...)...)
		if want := "divan: " + tc.want + "\n"; status != 1 || out != want {
			t.Errorf("%s: exit status %d, %q; want %q", tc.args, status, out, want)
		}
	}
}

// TestImportReplications brings what other servers do last.
func TestImportReplications(t *testing.T) {
	t.Parallel()
	s := newSides(t)
	job := `{"source":"http://127.0.0.1:1/a","target":"http://127.0.0.1:1/b","owner":"adm"}`
	s.from.want(t, "PUT", "/_replicator/job", job, 201)
	if out := s.bring(t, 0); !strings.Contains(out, "\n  _replicator: 1 document. They ") {
		t.Errorf("%s", out)
	}
	s.to.want(t, "GET", "/_replicator/job", "", 404)
	s.bring(t, 0, "--replications")
	var got map[string]any
	if err := json.Unmarshal([]byte(s.to.want(t, "GET", "/_replicator/job", "", 200)), &got); err != nil || got["source"] != "http://127.0.0.1:1/a" {
		t.Errorf("%v %v", got, err)
	}
}

// The proxy of the environment is for documents as for everything else.
func TestImportThroughProxy(t *testing.T) {
	t.Parallel()
	s := newSides(t)
	s.from.want(t, "PUT", "/pond", "", 201)
	s.from.want(t, "PUT", "/pond/x", `{}`, 201)
	at, err := url.Parse(s.from.base)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Host = at.Host }})
	defer proxy.Close()
	environ := []string{"HTTP_PROXY=" + proxy.URL, "http_proxy=" + proxy.URL, "NO_PROXY=", "no_proxy="}
	status, out := run(t, environ, "import", "http://adm:pass@old.invalid:5984", "--to", s.to.base, "--databases", "pond")
	if status != 0 || s.to.count("pond") != 1 {
		t.Errorf("exit status %d\n%s", status, out)
	}
}

// Replications begin to run when they are there: all other databases come before,
// however many at the same time.
func TestImportReplicationsLast(t *testing.T) {
	t.Parallel()
	s := newSides(t)
	s.from.want(t, "PUT", "/pond", "", 201)
	s.from.load(t, "pond", "d", 5000)
	s.from.want(t, "PUT", "/_replicator/r", `{"source":"http://127.0.0.1:1/a","target":"http://127.0.0.1:1/b"}`, 201)
	out := s.bring(t, 0, "--parallel", "4", "--replications")
	if pond, last := strings.Index(out, "\npond: "), strings.Index(out, "\n_replicator: "); pond < 0 || last < pond {
		t.Errorf("replications come too early:\n%s", out)
	}
}
