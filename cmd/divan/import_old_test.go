package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// oldCouch stands before a server and makes it look like CouchDB 1.x: sequences
// are numbers, and what came later is not there. Its databases have one shard.
type oldCouch struct {
	proxy *httputil.ReverseProxy
	mu    sync.Mutex
	seqs  map[string]string // what the number of a sequence stands for
}

func newOldCouch(t *testing.T, server *client) *client {
	t.Helper()
	to, err := url.Parse(strings.Replace(server.base, "adm:pass@", "", 1))
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	o := &oldCouch{seqs: map[string]string{}}
	o.proxy = &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Header.Del("Accept-Encoding")
			r.Out.URL.RawQuery = o.query(r.In.URL)
		},
		ModifyResponse: o.age,
	}
	s := httptest.NewServer(o)
	t.Cleanup(s.Close)
	return newClient(t, strings.TrimPrefix(s.URL, "http://"))
}

// ServeHTTP implements http.Handler.
func (o *oldCouch) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/_bulk_get"):
		http.Error(w, `{"error":"method_not_allowed","reason":"Only DELETE,GET,HEAD,POST allowed"}`, http.StatusMethodNotAllowed)
	case strings.HasSuffix(r.URL.Path, "/_purged_infos_limit"):
		http.Error(w, `{"error":"not_found","reason":"missing"}`, http.StatusNotFound)
	default:
		o.proxy.ServeHTTP(w, r)
	}
}

// query is the query that the server behind understands.
func (o *oldCouch) query(u *url.URL) string {
	if u.Path == "/_all_dbs" {
		return "" // no pages
	}
	q := u.Query()
	o.mu.Lock()
	defer o.mu.Unlock()
	if since, ok := o.seqs[q.Get("since")]; ok {
		q.Set("since", since)
	}
	return q.Encode()
}

// age makes an answer older.
func (o *oldCouch) age(res *http.Response) error {
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") && !strings.HasPrefix(res.Header.Get("Content-Type"), "text/plain") {
		return nil
	}
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	text = regexp.MustCompile(`"(seq|last_seq|update_seq)": *"(\d+)-([^"]+)"`).ReplaceAllFunc(text, func(found []byte) []byte {
		m := regexp.MustCompile(`"(\w+)": *"((\d+)-[^"]+)"`).FindSubmatch(found)
		o.seqs[string(m[3])] = string(m[2])
		return fmt.Appendf(nil, `"%s":%s`, m[1], m[3])
	})
	text = regexp.MustCompile(`,"pending":\d+|,"(cluster|props)":\{[^}]*\}`).ReplaceAll(text, nil)
	text = bytes.ReplaceAll(text, []byte(`"version":"3.5.0"`), []byte(`"version":"1.6.1"`))
	res.Body = io.NopCloser(bytes.NewReader(text))
	res.ContentLength = int64(len(text))
	res.Header.Set("Content-Length", fmt.Sprint(len(text)))
	return nil
}

// TestImportOld moves what an old server has.
func TestImportOld(t *testing.T) {
	t.Parallel()
	s := newSides(t)
	c := s.from
	c.want(t, "PUT", "/pond?q=1", "", 201)
	c.want(t, "PUT", "/pond/_security", "{}", 200)
	c.load(t, "pond", "d", 3000)
	c.want(t, "POST", "/pond/_bulk_docs", `{"new_edits":false,"docs":[{"_id":"torn","_rev":"1-b"},{"_id":"torn","_rev":"1-c"},{"_id":"gone","_rev":"3-d","_deleted":true}]}`, 201)
	c.want(t, "PUT", "/pond/_design/v", `{"views":{"v":{"map":"function (doc) { emit(1, 1); }","reduce":"_sum"}}}`, 201)
	if status, answer, err := c.do("PUT", "/pond/with/picture", "image/png", incompressible(3, 300_000)); status != 201 || err != nil {
		t.Fatalf("%d %s %v", status, answer, err)
	}
	old := newOldCouch(t, c)
	s.args[1] = old.base
	out := strings.ReplaceAll(s.bring(t, 0, "--databases", "pond"), strings.TrimPrefix(old.base, "http://adm:pass@"), "1.x")
	sameText(t, out, `1.x: 1 database, 3,004 documents (Divan V)
pond: 3,005 revisions, 1.8 MB in T

1 database with 3,003 documents, and 1 deleted, at 1.x.
As many are at NEW.

Left behind:
  documents that do not replicate (_local/…), among them the checkpoints of clients
  server administrators and other settings (GET /_node/_local/_config shows them)
`)
	anybody := *s.to // an empty security object lets every client in
	anybody.base = strings.Replace(anybody.base, "adm:pass@", "", 1)
	anybody.want(t, "GET", "/pond/d000000", "", 200)
	sameText(t, s.to.want(t, "GET", "/pond/torn?conflicts=true", "", 200), c.want(t, "GET", "/pond/torn?conflicts=true", "", 200))
	sameText(t, s.to.want(t, "GET", "/pond/with", "", 200), c.want(t, "GET", "/pond/with", "", 200))
	if again := s.bring(t, 0, "--databases", "pond"); !strings.Contains(again, "\npond: nothing new\n") {
		t.Errorf("second run: %s", again)
	}
	c.load(t, "pond", "e", 10)
	if again := s.bring(t, 0, "--databases", "pond"); !strings.Contains(again, "\npond: 10 revisions, ") {
		t.Errorf("third run: %s", again)
	}
}
