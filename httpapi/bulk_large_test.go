package httpapi

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"divan/cluster/config"
	"divan/storage/storagetest"
)

// TestLargeBulk has bodies that are parsed as they come: what is stored, answered
// and refused is the same as of small ones, and of memory only what is kept.
func TestLargeBulk(t *testing.T) {
	storagetest.SkipShort(t)
	s := newSite(t, config.Values{"couchdb": {"max_document_size": "1000000"}, "chttpd": {"max_body_memory": "75000000"}})
	s.text(201, "PUT", "/db", nil)
	const n = 3000
	docs := make([]string, n)
	for i := range docs {
		docs[i] = fmt.Sprintf(`{ "_id":"d%04d", "n":%d,	"text":"%s"}`, i, i, strings.Repeat("é\\u0041", 300))
	}
	picture := strings.Repeat("\x00picture", 500_000)
	docs[7] = fmt.Sprintf(`{"_id":"d0007","_attachments":{"a":{"content_type":"image/png","data":"%s"}}}`, base64.StdEncoding.EncodeToString([]byte(picture)))
	body := func(docs []string, rest string) string {
		return `{"new_edits":true,"docs":[` + strings.Join(docs, " ,\n") + `]` + rest
	}

	s.text(400, "POST", "/db/_bulk_docs", body(docs, `,"w":}`), asJSON)
	s.text(400, "POST", "/db/_bulk_docs", body(append(docs[:n:n], `{"_odd":1}`), `}`), asJSON)
	s.text(413, "POST", "/db/_bulk_docs", body(append(docs[:n:n], `{"text":"`+strings.Repeat("x", 3_000_000)+`"}`), `}`), asJSON)
	s.text(413, "POST", "/db/_bulk_docs", zipped(t, []byte(body([]string{`{"text":"` + strings.Repeat("x", 30_000_000)}, ``))), asJSON, "Content-Encoding: gzip")
	large := make([]string, 40) // more than bodies may have, in documents of which each may be
	for i := range large {
		large[i] = `{"text":"` + strings.Repeat("x", 900_000) + `"}`
	}
	s.text(413, "POST", "/db/_bulk_docs", body(large, `}`), asJSON)
	s.text(413, "POST", "/db/_bulk_docs", body(append(docs[:n:n], `{"_id":"wide",`+strings.Repeat(" ", 3_000_000)+`"n":1}`), `}`), asJSON)
	if got := s.text(200, "GET", "/db", nil); !strings.Contains(got, `"doc_count":0`) {
		t.Errorf("refused requests have stored something: %s", got)
	}
	for _, send := range []struct {
		body    any
		headers []string
	}{
		{body(docs, `}`), nil},
		{zipped(t, []byte(body(docs, `}`))), []string{"Content-Encoding: gzip"}},
	} {
		got := s.text(201, "POST", "/db/_bulk_docs", send.body, append(send.headers, asJSON)...)
		if strings.Count(got, `"id":"d`) != n {
			t.Errorf("%d documents, the answer is %.200s", n, got)
		}
	}
	if got := s.text(200, "GET", "/db", nil); !strings.Contains(got, fmt.Sprintf(`"doc_count":%d`, n)) {
		t.Errorf("stored: %s", got)
	}
	s.text(201, "POST", "/db/_bulk_docs", `{"docs":[{"_id":"behind"}`+strings.Repeat(" ", 40_000_000)+`]}`, asJSON) // more than bodies may have
	if got := s.text(200, "GET", "/db/d0042", nil); !strings.Contains(got, `"n":42,"text":"`+strings.Repeat("éA", 300)+`"`) {
		t.Errorf("a document is not what was sent: %.200s", got)
	}
	if got := s.text(200, "GET", "/db/d0007/a", nil); got != strings.TrimSpace(picture) {
		t.Errorf("an attachment of %d bytes has %d", len(picture), len(got))
	}
	if n := s.api.Memory.Used(); n != 0 {
		t.Errorf("%d bytes are taken with no request under way", n)
	}
}

// TestLargestBulk: what a large body is inflated to has the limit of all requests.
func TestLargestBulk(t *testing.T) {
	s := newSite(t, config.Values{"chttpd": {"max_http_request_size": "8000000"}})
	s.text(201, "PUT", "/db", nil)
	for size, want := range map[int]int{7_000_000: 201, 9_000_000: 413} {
		body := zipped(t, []byte(`{"docs":[{}`+strings.Repeat(" ", size)+`]}`))
		s.text(want, "POST", "/db/_bulk_docs", body, asJSON, "Content-Encoding: gzip")
	}
}
