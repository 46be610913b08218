package httpapi

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"divan/cluster/config"
	"divan/httpapi/apitest"
	"divan/storage/storagetest"
)

// TestMemoryOfBodies: bodies take no more memory than there is for all of them. One
// that can never have as much is refused for good, one that comes at a bad time is
// told to come again, and what was taken is given back.
func TestMemoryOfBodies(t *testing.T) {
	s := newSite(t, config.Values{"chttpd": {"max_body_memory": "16000000"}})
	s.text(201, "PUT", "/db", nil)
	large := `{"text":"` + strings.Repeat("x", 4_000_000) + `"}`
	s.text(201, "PUT", "/db/large", large)
	s.text(413, "POST", "/db/_bulk_docs", io.MultiReader(strings.NewReader(`{"docs":["`), strings.NewReader(strings.Repeat("x", 11_000_000))), asJSON)
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	apitest.Must(t, err)
	_, err = io.WriteString(conn, "PUT /db/said HTTP/1.1\r\nHost: x\r\nAuthorization: Basic YWRtOnBhc3M=\r\nContent-Length: 7000000\r\n\r\n{")
	apitest.Must(t, err)
	for s.api.Memory.Used() == 0 { // it has begun
		<-time.After(time.Millisecond)
	}
	if n := s.api.Memory.Used(); n > 3_000_000 {
		t.Errorf("%d bytes are taken for the word of a client", n)
	}
	apitest.Must(t, conn.Close())
	for s.api.Memory.Used() > 0 { // it is over
		<-time.After(time.Millisecond)
	}
	read, write := io.Pipe()
	answered := make(chan *http.Response)
	go func() { answered <- s.do("PUT", "/db/slow", read) }()
	if _, err := io.WriteString(write, large[:len(large)-2]); err != nil {
		t.Fatal(err)
	}
	for s.api.Memory.Used() < 8_000_000 { // it has arrived
		<-time.After(time.Millisecond)
	}
	if got := s.text(200, "GET", "/_node/_local/_prometheus", nil); strings.Contains(got, "\ncouchdb_request_bodies_bytes 0\n") ||
		!strings.Contains(got, "\ncouchdb_request_bodies_bytes ") {
		t.Error("no figure tells of it")
	}
	res := s.do("PUT", "/db/other", large)
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") != "1" {
		t.Errorf("a second large body: %d %v", res.StatusCode, res.Header)
	}
	s.text(201, "PUT", "/db/small", "{}")
	if _, err := io.WriteString(write, `"}`); err != nil {
		t.Fatal(err)
	}
	_ = write.Close() // never fails
	if res := <-answered; res.StatusCode != http.StatusCreated {
		t.Errorf("the body that was there first: %d", res.StatusCode)
	}
	s.text(201, "PUT", "/db/other", large)
	if n := s.api.Memory.Used(); n != 0 {
		t.Errorf("%d bytes are taken with no request under way", n)
	}
	if s.api.Memory.Reclaimable() == 0 || s.api.Memory.Reclaimable() != 0 {
		t.Error("nobody knows that a large body has left garbage")
	}
	if got := s.text(200, "GET", "/db/other", nil); !strings.Contains(got, strings.Repeat("x", 4_000_000)) {
		t.Error("a body that was read in pieces is not what was sent")
	}
}

// TestInflatedDocument: a compressed document is inflated up to the size that a
// document may have; the memory for it is not taken first.
func TestInflatedDocument(t *testing.T) {
	storagetest.SkipShort(t)
	s := newSite(t, config.Values{"couchdb": {"max_document_size": "100000"}})
	s.text(201, "PUT", "/db", nil)
	bomb := zipped(t, append([]byte(`{"text":"`), bytes.Repeat([]byte("0"), 50<<20)...))
	for _, request := range []string{"PUT /db/bomb", "POST /db"} {
		method, path, _ := strings.Cut(request, " ")
		if got := s.text(413, method, path, bomb, "Content-Encoding: gzip", asJSON); !strings.Contains(got, `"too_large"`) {
			t.Errorf("%s: %s", request, got)
		}
	}
	keys := zipped(t, append([]byte(`{"keys":["`), bytes.Repeat([]byte("0"), 65<<20)...))
	if got := s.text(413, "POST", "/db/_all_docs", keys, "Content-Encoding: gzip", asJSON); !strings.Contains(got, `"too_large"`) {
		t.Errorf("keys: %s", got)
	}
	s.text(201, "PUT", "/db/good", zipped(t, []byte(`{"a":1}`)), "Content-Encoding: gzip", asJSON)
}

// TestLargeBodiesLeaveSpace: large bodies under way, from any clients and however slow,
// keep no small one out.
func TestLargeBodiesLeaveSpace(t *testing.T) {
	s := newSite(t, config.Values{"chttpd": {"max_body_memory": "12600000"}})
	s.text(201, "PUT", "/db", nil)
	answered := make(chan int) // each large body takes four times 1 MiB
	var held []*io.PipeWriter
	for taken := int64(0); ; taken = s.api.Memory.Used() {
		read, write := io.Pipe()
		go func() { answered <- s.do("PUT", "/db/slow", read).StatusCode }()
		go func() { _, _ = io.WriteString(write, `{"text":"`+strings.Repeat("x", 1_500_000)) }() // fails when it is refused
		held = append(held, write)
		for s.api.Memory.Used() < taken+3_000_000 && len(answered) == 0 {
			select {
			case status := <-answered:
				if status != http.StatusServiceUnavailable {
					t.Fatalf("a large body: %d", status)
				}
				s.text(201, "PUT", "/db/small", `{"text":"`+strings.Repeat("x", 200_000)+`"}`)
				for _, write := range held {
					_ = write.Close() // never fails
				}
				for range len(held) - 1 {
					<-answered
				}
				return
			case <-time.After(time.Millisecond):
			}
		}
	}
}

// TestMemoryOfParts: small attachments are kept until their document is written, as long
// as there is memory for them. The others are stored, and all of them are there in the end.
func TestMemoryOfParts(t *testing.T) {
	s := newSite(t, config.Values{"chttpd": {"max_body_memory": "5000000"}})
	s.text(201, "PUT", "/db", nil)
	const parts = 60
	content := func(i int) string { return strings.Repeat(string(rune('A'+i)), 50_000) }
	related, form, names := "", "", ""
	for i := range parts {
		names += fmt.Sprintf(`,"f%d":{"follows":true,"length":50000,"content_type":"image/png"}`, i)
		related += "--b\r\n\r\n" + content(i) + "\r\n"
		form += fmt.Sprintf("--b\r\nContent-Disposition: form-data; name=\"_attachments\"; filename=\"f%d\"\r\n\r\n%s\r\n", i, content(i))
	}
	related = "--b\r\nContent-Type: application/json\r\n\r\n{\"_attachments\":{" + names[1:] + "}}\r\n" + related + "--b--"
	form += "--b\r\nContent-Disposition: form-data; name=\"_doc\"\r\n\r\n{}\r\n--b--\r\n"
	for _, tc := range []struct{ method, path, kind, body string }{
		{"PUT", "/db/related", "multipart/related", related}, {"POST", "/db/form", "multipart/form-data", form},
	} {
		read, write := io.Pipe()
		answered := make(chan *http.Response)
		go func() {
			answered <- s.do(tc.method, tc.path, read, "Content-Type: "+tc.kind+"; boundary=b", "Referer: "+s.url)
		}()
		last := len(tc.body) - 100
		if _, err := io.WriteString(write, tc.body[:last]); err != nil {
			t.Fatal(err)
		}
		for s.api.Memory.Used() < 2_500_000 { // most of what there is for an account is used
			<-time.After(time.Millisecond)
		}
		if _, err := io.WriteString(write, tc.body[last:]); err != nil {
			t.Fatal(err)
		}
		_ = write.Close() // never fails
		if res := <-answered; res.StatusCode != http.StatusCreated {
			t.Fatalf("%s: %d", tc.path, res.StatusCode)
		}
		for i := range parts {
			if got := s.text(200, "GET", fmt.Sprintf("%s/f%d", tc.path, i), nil); got != content(i) {
				t.Errorf("%s: attachment %d has %d bytes", tc.path, i, len(got))
			}
		}
	}
}

// TestMemoryOfElements: what is made of a short text counts, too. An element of a list
// may have two bytes, and hundreds are made of it.
func TestMemoryOfElements(t *testing.T) {
	s := newSite(t, config.Values{"chttpd": {"max_body_memory": "16000000"}})
	s.text(201, "PUT", "/db", nil)
	s.text(201, "PUT", "/db/_design/v", `{"views":{"all":{"map":"function (doc) { emit(doc._id) }"}}}`)
	refused := func(path, body string, headers ...string) {
		t.Helper()
		for s.api.Memory.Used() != 0 { // of the request before, which has its answer
			<-time.After(time.Millisecond)
		}
		s.text(413, "POST", path, body, headers...)
	}
	list := func(before, element string, size int, after string) string {
		return before + strings.Repeat(element+",", size/(len(element)+1)) + element + after
	}
	for _, tc := range []struct{ path, head, element, tail string }{
		{"/db/_bulk_get", `{"docs":[`, `{}`, `]}`},
		{"/db/_bulk_docs", `{"docs":[`, `{}`, `]}`},
		{"/db/_bulk_docs", `{"docs":[]`, `"":1`, `}`},
		{"/db/_all_docs", `{"keys":[`, `""`, `]}`},
		{"/db/_all_docs/queries", `{"queries":[`, `{}`, `]}`},
		{"/db/_design/v/_view/all", `{"keys":[`, `""`, `]}`},
		{"/db/_design/v/_view/all/queries", `{"queries":[`, `{}`, `]}`},
		{"/db/_changes?filter=_doc_ids", `{"doc_ids":[`, `""`, `]}`},
		{"/db/_revs_diff", `{"a":[`, `"1-a"`, `]}`},
		{"/db/_missing_revs", `{"a":[`, `"1-a"`, `]}`},
		{"/db/_purge", `{"a":[`, `"1-a"`, `]}`},
	} {
		open := `,`
		if strings.HasSuffix(tc.head, "[") {
			open = ""
		}
		refused(tc.path, list(tc.head+open, tc.element, 2_000_000, tc.tail))
		res := s.do("POST", tc.path, list(tc.head+open, tc.element, 1000, tc.tail), asJSON)
		if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode >= 300 {
			t.Errorf("%s: a short list: %d, %v", tc.path, res.StatusCode, err)
		}
	}
	// The same in a body that is parsed as it comes.
	large := `{"large":"` + strings.Repeat("x", 4<<20) + `","docs":[]`
	refused("/db/_bulk_docs", list(large+",", `"":1`, 400_000, "}"))
	refused("/db/_bulk_docs", list(`{"docs":[],"":"`+strings.Repeat("x", 2_000_000), `","":"`+strings.Repeat("x", 2_000_000), 12_000_000, `"}`))
	// Files of a form are stored as they come; their names stay.
	form := func(names int) string {
		part := "--b\r\nContent-Disposition: form-data; name=\"_attachments\"; filename=\"%d%s\"\r\n\r\nx\r\n"
		var b strings.Builder
		for i := range names {
			fmt.Fprintf(&b, part, i, strings.Repeat("n", 60_000))
		}
		return b.String() + "--b\r\nContent-Disposition: form-data; name=\"_doc\"\r\n\r\n{}\r\n--b--\r\n"
	}
	refused("/db/form", form(200), "Content-Type: multipart/form-data; boundary=b", "Referer: "+s.url)
	s.text(201, "POST", "/db/form", form(30), "Content-Type: multipart/form-data; boundary=b", "Referer: "+s.url)
}
