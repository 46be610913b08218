package httpapi

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/md5"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"divan/cluster/config"
	"divan/httpapi/apitest"
)

// site is a node behind a real HTTP server, for what a recorder does not show.
type site struct {
	t   *testing.T
	api *API
	url string
}

func newSite(t *testing.T, values config.Values) *site {
	t.Helper()
	a := nodeAPI(t, values)
	server := httptest.NewServer(a)
	t.Cleanup(func() {
		a.EndFeeds()
		server.Close()
	})
	return &site{t: t, api: a, url: server.URL}
}

// do sends a request as the administrator. Headers are "Name: value".
func (s *site) do(method, path string, body any, headers ...string) *http.Response {
	s.t.Helper()
	var r io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		r = strings.NewReader(b)
	case []byte:
		r = bytes.NewReader(b)
	case io.Reader:
		r = b
	}
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, r)
	apitest.Must(s.t, err)
	req.Header.Set("Authorization", "Basic YWRtOnBhc3M=")
	req.Header.Set("Accept-Encoding", "identity")
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Set(name, value)
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	apitest.Must(s.t, err)
	s.t.Cleanup(func() { apitest.Must(s.t, res.Body.Close()) })
	return res
}

// text sends a request whose status must be the one given, and returns the
// body.
func (s *site) text(status int, method, path string, body any, headers ...string) string {
	s.t.Helper()
	if b, ok := body.(string); ok && strings.HasPrefix(b, "{") && len(headers) == 0 {
		headers = []string{"Content-Type: application/json"}
	}
	res := s.do(method, path, body, headers...)
	got, err := io.ReadAll(res.Body)
	apitest.Must(s.t, err)
	if res.StatusCode != status {
		s.t.Fatalf("%s %s: %d, want %d: %.500s", method, path, res.StatusCode, status, got)
	}
	return string(got)
}

// rev returns the member rev of an answer.
func (s *site) rev(text string) string {
	s.t.Helper()
	var answer struct{ Rev string }
	apitest.Must(s.t, json.Unmarshal([]byte(text), &answer))
	return answer.Rev
}

// noise is content that does not compress.
func noise(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(b)
	return b
}

func digest(b []byte) string {
	sum := md5.Sum(b)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// TestMissingStubLeavesOthersContent: one stub of nothing refuses a whole bulk
// request, but the documents of other shards are written, with their content.
func TestMissingStubLeavesOthersContent(t *testing.T) {
	s := newSite(t, nil)
	s.text(201, "PUT", "/db?q=2", nil)
	data := noise(100 << 10)
	var docs strings.Builder
	for i := range 8 {
		fmt.Fprintf(&docs, `{"_id":"doc%d","_attachments":{"a.bin":{"content_type":"image/png","data":"%s"}}},`, i, base64.StdEncoding.EncodeToString(data))
	}
	docs.WriteString(`{"_id":"x","_attachments":{"none":{"stub":true}}}`)
	got := s.text(412, "POST", "/db/_bulk_docs", `{"docs":[`+docs.String()+`]}`)
	if want := `{"error":"missing_stub","reason":"Invalid attachment stub in x for none"}`; strings.TrimSpace(got) != want {
		t.Errorf("%s, want %s", got, want)
	}
	written := 0
	for i := range 8 {
		path := fmt.Sprintf("/db/doc%d", i)
		if s.do("HEAD", path, nil).StatusCode == http.StatusNotFound {
			continue
		}
		written++
		res := s.do("GET", path+"/a.bin", nil)
		got, err := io.ReadAll(res.Body)
		apitest.Must(t, err)
		if res.StatusCode != http.StatusOK || !bytes.Equal(got, data) {
			t.Errorf("doc%d: %d, %d bytes", i, res.StatusCode, len(got))
		}
	}
	if written == 0 || written == 8 {
		t.Errorf("%d of 8 documents were written", written)
	}
}

// TestLargeAttachment takes content that is stored outside the edit through
// every way in and out.
func TestLargeAttachment(t *testing.T) {
	s := newSite(t, nil)
	s.text(201, "PUT", "/db", nil)
	const size = 1<<20 + 77
	data := noise(size)
	s.text(201, "PUT", "/db/put/a.bin", data, "Content-Type: image/png")
	s.text(201, "PUT", "/db/inline", `{"_attachments":{"a.bin":{"content_type":"image/png","data":"`+base64.StdEncoding.EncodeToString(data)+`"}}}`)
	head := fmt.Sprintf("--xyz\r\n\r\n{\"_attachments\":{\"a.bin\":{\"follows\":true,\"content_type\":\"image/png\",\"length\":%d}}}\r\n--xyz\r\n\r\n", size)
	s.text(201, "PUT", "/db/parts", head+string(data)+"\r\n--xyz--", "Content-Type: multipart/related; boundary=xyz")
	s.text(201, "COPY", "/db/put", nil, "Destination: copied")
	form := "--xyz\r\nContent-Disposition: form-data; name=\"_doc\"\r\n\r\n{}\r\n--xyz\r\nContent-Disposition: form-data; name=\"_attachments\"; filename=\"a.bin\"\r\nContent-Type: image/png\r\n\r\n"
	s.text(201, "POST", "/db/form", form+string(data)+"\r\n--xyz--", "Content-Type: multipart/form-data; boundary=xyz", "Referer: "+s.url)
	for _, id := range []string{"put", "inline", "parts", "copied", "form"} {
		res := s.do("GET", "/db/"+id+"/a.bin", nil)
		got, err := io.ReadAll(res.Body)
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s: %d bytes, %v", id, len(got), err)
		}
		if want := `"` + digest(data) + `"`; res.Header.Get("Etag") != want {
			t.Errorf("%s: ETag %s, want %s", id, res.Header.Get("Etag"), want)
		}
		res = s.do("GET", "/db/"+id+"/a.bin", nil, "Range: bytes=65530-65545")
		if got, err := io.ReadAll(res.Body); err != nil || !bytes.Equal(got, data[65530:65546]) || res.StatusCode != http.StatusPartialContent {
			t.Errorf("%s: range: %d, %d bytes, %v", id, res.StatusCode, len(got), err)
		}
		var doc struct {
			Attachments map[string]struct {
				Data   []byte
				Digest string
			} `json:"_attachments"`
		}
		text := s.text(200, "GET", "/db/"+id+"?attachments=true", nil, "Accept: application/json")
		apitest.Must(t, json.Unmarshal([]byte(text), &doc))
		if a := doc.Attachments["a.bin"]; !bytes.Equal(a.Data, data) || a.Digest != "md5-"+digest(data) {
			t.Errorf("%s: inline: %d bytes, %s", id, len(a.Data), a.Digest)
		}
		res = s.do("GET", "/db/"+id+"?attachments=true", nil, "Accept: multipart/related")
		parts, err := io.ReadAll(res.Body)
		if err != nil || int64(len(parts)) != res.ContentLength || !bytes.Contains(parts, data) {
			t.Errorf("%s: multipart: %d bytes of %d, %v", id, len(parts), res.ContentLength, err)
		}
	}
}

// TestReplicateByParts sends what open_revs answers back to another database,
// as a replicator does.
func TestReplicateByParts(t *testing.T) {
	s := newSite(t, nil)
	s.text(201, "PUT", "/source", nil)
	s.text(201, "PUT", "/target", nil)
	plain := []byte(strings.Repeat("compress me ", 10_000))
	rev := s.rev(s.text(201, "PUT", "/source/d/text", plain, "Content-Type: text/plain"))
	rev = s.rev(s.text(201, "PUT", "/source/d/bin?rev="+rev, noise(100_000), "Content-Type: image/png"))
	res := s.do("GET", "/source/d?attachments=true&revs=true&rev="+rev, nil, "Accept: multipart/related")
	body, err := io.ReadAll(res.Body)
	apitest.Must(t, err)
	s.text(201, "PUT", "/target/d?new_edits=false", body, "Content-Type: "+res.Header.Get("Content-Type"))
	for _, query := range []string{"", "?att_encoding_info=true", "?attachments=true", "?revs=true"} {
		want := s.text(200, "GET", "/source/d"+query, nil, "Accept: application/json")
		if got := s.text(200, "GET", "/target/d"+query, nil, "Accept: application/json"); got != want {
			t.Errorf("%s: got %.300s\nwant %.300s", query, got, want)
		}
	}
	if got := s.text(200, "GET", "/target/d/text", nil); got != string(plain) {
		t.Errorf("%d bytes of text", len(got))
	}
	res = s.do("GET", "/target/d/text", nil, "Accept-Encoding: gzip")
	z, err := gzip.NewReader(res.Body)
	apitest.Must(t, err)
	if got, err := io.ReadAll(z); err != nil || !bytes.Equal(got, plain) {
		t.Errorf("%d bytes of gzip, %v", len(got), err)
	}
}

func TestMultipartRefusals(t *testing.T) {
	s := newSite(t, nil)
	s.text(201, "PUT", "/db", nil)
	const related = "Content-Type: multipart/related; boundary=xyz"
	follows := func(length string) string {
		return `{"_attachments":{"a":{"follows":true,"content_type":"image/png"` + length + `}}}`
	}
	for name, c := range map[string]struct{ body, want string }{
		"no part follows":   {"--xyz\r\n\r\n" + follows("") + "\r\n--xyz--", "No part follows for attachment `a`."},
		"too short":         {"--xyz\r\n\r\n" + follows(`,"length":9`) + "\r\n--xyz\r\n\r\nabc\r\n--xyz--", "attachment shorter than expected"},
		"too long":          {"--xyz\r\n\r\n" + follows(`,"length":2`) + "\r\n--xyz\r\n\r\nabc\r\n--xyz--", "attachment longer than expected"},
		"cut off":           {"--xyz\r\n\r\n" + follows("") + "\r\n--xyz\r\n\r\nab", "The multipart body is malformed."},
		"wrong digest":      {"--xyz\r\n\r\n" + follows(`,"digest":"md5-AAAAAAAAAAAAAAAAAAAAAA=="`) + "\r\n--xyz\r\n\r\nabc\r\n--xyz--", "Possible message corruption of attachment `a`."},
		"nothing":           {"", "invalid UTF-8 JSON"},
		"no JSON":           {"--xyz\r\n\r\n{\r\n--xyz--", "invalid UTF-8 JSON"},
		"an invalid member": {"--xyz\r\n\r\n{\"_x\":1}\r\n--xyz--", "Bad special document member: _x"},
	} {
		if got := s.text(400, "PUT", "/db/d", c.body, related); !strings.Contains(got, `"reason":"`+c.want+`"`) {
			t.Errorf("%s: %s", name, got)
		}
	}
	s.text(404, "GET", "/db/d", nil)
	if got := s.text(400, "PUT", "/db/d", follows("")); !strings.Contains(got, "Invalid attachment data for a") {
		t.Errorf("follows without parts: %s", got)
	}
	// Parts beyond those announced are passed over.
	s.text(201, "PUT", "/db/d", "--xyz\r\n\r\n"+follows("")+"\r\n--xyz\r\n\r\nabc\r\n--xyz\r\n\r\nmore\r\n--xyz--", related)
}

func TestSizeLimits(t *testing.T) {
	s := newSite(t, config.Values{"couchdb": {"max_document_size": "50", "max_attachment_size": "10"}})
	s.text(201, "PUT", "/db", nil)
	const related = "Content-Type: multipart/related; boundary=xyz"
	long := strings.Repeat("x", 60)
	text64 := base64.StdEncoding.EncodeToString([]byte(long))
	for name, c := range map[string]struct {
		method, path, body string
		headers            []string
		want               string
	}{
		"document":         {"PUT", "/db/d", `{"_id":"d","a":"` + long + `"}`, nil, `{"error":"document_too_large","reason":"d"}`},
		"one of many":      {"POST", "/db/_bulk_docs", `{"docs":[{"_id":"x"},{"_id":"y","a":"` + long + `"}]}`, nil, `{"error":"document_too_large","reason":"y"}`},
		"attachment":       {"PUT", "/db/d/a", long, []string{"Content-Type: image/png"}, `{"error":"attachment_too_large","reason":"a"}`},
		"inline":           {"PUT", "/db/d", `{"_attachments":{"a":{"data":"` + text64 + `"}}}`, nil, `{"error":"attachment_too_large","reason":"a"}`},
		"bulk":             {"POST", "/db/_bulk_docs", `{"docs":[{"_attachments":{"b":{"data":"` + text64 + `"}}}]}`, nil, `{"error":"attachment_too_large","reason":"b"}`},
		"part":             {"PUT", "/db/d", "--xyz\r\n\r\n{\"_attachments\":{\"a\":{\"follows\":true}}}\r\n--xyz\r\n\r\n" + long + "\r\n--xyz--", []string{related}, `{"error":"attachment_too_large","reason":"a"}`},
		"part as promised": {"PUT", "/db/d", "--xyz\r\n\r\n{\"_attachments\":{\"a\":{\"follows\":true,\"length\":60}}}\r\n--xyz\r\n\r\n" + long + "\r\n--xyz--", []string{related}, `{"error":"attachment_too_large","reason":"a"}`},
	} {
		if got := s.text(413, c.method, c.path, c.body, c.headers...); got != c.want+"\n" {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := s.text(200, "GET", "/db/_all_docs", nil); !strings.HasPrefix(got, `{"total_rows":0,`) {
		t.Errorf("something was written: %s", got)
	}
}

// TestBrokenUploads has content that breaks off or is not what its headers say:
// the client's mistakes, and nothing of it is kept.
func TestBrokenUploads(t *testing.T) {
	s := newSite(t, nil)
	s.text(201, "PUT", "/db", nil)
	const coded = "Content-Encoding: gzip"
	whole := string(zipped(t, noise(200_000)))
	for _, chunks := range []string{"zz\r\nhello\r\n0\r\n\r\n", "5\r\nhelloxx\r\n0\r\n\r\n", "ffffffffffffffffff\r\nhello"} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		apitest.Must(t, err)
		_, err = io.WriteString(conn, "PUT /db/d/a HTTP/1.1\r\nHost: x\r\nAuthorization: Basic YWRtOnBhc3M=\r\nTransfer-Encoding: chunked\r\n\r\n"+chunks)
		apitest.Must(t, err)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		apitest.Must(t, err)
		if got, err := io.ReadAll(res.Body); res.StatusCode != http.StatusBadRequest || err != nil {
			t.Errorf("%q: %d %s %v", chunks, res.StatusCode, got, err)
		}
		apitest.Must(t, conn.Close())
	}
	s.text(404, "GET", "/db/d", nil)
	s.text(201, "PUT", "/db/d/a", whole, coded)
	if got := s.text(200, "GET", "/db/d/a", nil); got != string(noise(200_000)) {
		t.Errorf("%d bytes", len(got))
	}
	for _, coding := range []string{"GZIP", " Gzip ", "identity", "IDENTITY"} { // case does not count
		body := "plain"
		if strings.Contains(strings.ToLower(coding), "gzip") {
			body = whole
		}
		s.text(201, "PUT", "/db/"+strings.TrimSpace(coding)+"/a", body, "Content-Encoding: "+coding)
	}
	s.text(415, "PUT", "/db/other/a", "plain", "Content-Encoding: br")
}

// TestNotGzip has content that says it is gzip and is not: it is kept as it
// came, since another server may hold it already, and does not stand in the way
// of its document.
func TestNotGzip(t *testing.T) {
	s := newSite(t, nil)
	s.text(201, "PUT", "/db", nil)
	const coded = "Content-Encoding: gzip"
	whole := string(zipped(t, noise(200_000)))
	for name, body := range map[string]string{"none": "no gzip", "empty": "", "short": "\x1f\x8b", "cut": whole[:len(whole)-5], "more": whole + "x"} {
		s.text(201, "PUT", "/db/"+name+"/a", body, coded, "Content-Type: text/plain")
		res := s.do("GET", "/db/"+name+"/a", nil, "Accept-Encoding: gzip")
		got, err := io.ReadAll(res.Body)
		apitest.Must(t, err)
		if string(got) != body || res.Header.Get("Content-Encoding") != "gzip" {
			t.Errorf("%s: %d bytes, %s", name, len(got), res.Header.Get("Content-Encoding"))
		}
	}
	for name, body := range map[string]string{"none": "no gzip", "empty": "", "short": "\x1f\x8b"} {
		if got := s.text(200, "GET", "/db/"+name+"/a", nil); got != body {
			t.Errorf("%s without gzip: %q", name, got)
		}
		want := `"data":"` + base64.StdEncoding.EncodeToString([]byte(body)) + `"`
		if got := s.text(200, "GET", "/db/"+name+"?attachments=true", nil, "Accept: application/json"); !strings.Contains(got, want) {
			t.Errorf("%s inside: %s", name, got)
		}
	}
	const related = "Content-Type: multipart/related; boundary=xyz"
	for path, members := range map[string]string{"/db/d": "", "/db/e?new_edits=false": `"_rev":"1-abc",`} {
		part := "--xyz\r\n\r\n{" + members + "\"_attachments\":{\"a\":{\"follows\":true,\"encoding\":\"gzip\"}}}\r\n--xyz\r\n\r\nno gzip\r\n--xyz--"
		s.text(201, "PUT", path, part, related)
		id, _, _ := strings.Cut(path, "?")
		if got := s.text(200, "GET", id+"/a", nil); got != "no gzip" {
			t.Errorf("%s: %s", path, got)
		}
	}
}

func zipped(t *testing.T, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write(content)
	apitest.Must(t, err)
	apitest.Must(t, z.Close())
	return b.Bytes()
}

// TestListBounds has bounds and keys that are no strings: they come before
// every id, or are not found.
func TestListBounds(t *testing.T) {
	a := nodeAPI(t, nil)
	list := func(offset string, rows ...string) string {
		return `{"total_rows":2,"offset":` + offset + `,"rows":[` + "\r\n" + strings.Join(rows, ",\r\n") + "\r\n]}"
	}
	const (
		rowA = `{"id":"a","key":"a","value":{"rev":"1-aa"}}`
		rowB = `{"id":"b","key":"b","value":{"rev":"1-bb"}}`
	)
	follow(t, a, []visit{
		{"adm", "PUT", "/db", "", 201, ""},
		{"adm", "POST", "/db/_bulk_docs", `{"new_edits":false,"docs":[{"_id":"a","_rev":"1-aa"},{"_id":"b","_rev":"1-bb"}]}`, 201, `[]`},
		{"adm", "GET", "/db/_all_docs?startkey=null", "", 200, list("0", rowA, rowB)},
		{"adm", "GET", "/db/_all_docs?startkey=%7B%7D", "", 200, list("0", rowA, rowB)},
		{"adm", "GET", "/db/_all_docs?endkey=5", "", 200, list("0")},
		{"adm", "GET", "/db/_all_docs?key=%5B%22a%22%5D", "", 200, list("0")},
		{"adm", "GET", "/db/_all_docs?descending=true&endkey=5", "", 200, list("0", rowB, rowA)},
		{"adm", "GET", "/db/_all_docs?descending=true&startkey=5", "", 200, list("2")},
		{"adm", "GET", "/db/_all_docs?keys=%5B%22b%22,5,%22a%22,null%5D", "", 200, list("null", rowB, `{"key":5,"error":"not_found"}`, rowA, `{"key":null,"error":"not_found"}`)},
		{"adm", "GET", "/db/_all_docs?keys=%5B%22b%22,5,%22a%22%5D&descending=true&skip=1&limit=1", "", 200, list("null", `{"key":5,"error":"not_found"}`)},
		{"adm", "POST", "/db/_all_docs", `{"queries":[]}`, 400, "{\"error\":\"bad_request\",\"reason\":\"The `queries` parameter is no longer supported at this endpoint\"}"},
		{"adm", "POST", "/db/_all_docs/queries", `{"queries":[]}`, 200, "{\"results\":[\r\n]}"},
		{"adm", "POST", "/db/_all_docs/queries", `{"queries":[5]}`, 400, ""},
	})
}

// TestQueriesTakeAnyType sends several lists as clients do that name no media
// type, or another one.
func TestQueriesTakeAnyType(t *testing.T) {
	s := newSite(t, nil)
	s.text(201, "PUT", "/db?partitioned=true", nil)
	for _, path := range []string{"_all_docs", "_design_docs", "_local_docs", "_partition/x/_all_docs"} {
		for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded"} {
			s.text(200, "POST", "/db/"+path+"/queries", `{"queries":[{}]}`, "Content-Type: "+kind)
		}
		s.text(415, "POST", "/db/"+path, `{}`, "Content-Type: text/plain")
	}
}

// TestDeleteHasNoBatch checks that a deletion is waited for with any query string, so that
// its conflict is told.
func TestDeleteHasNoBatch(t *testing.T) {
	s := newSite(t, nil)
	s.text(201, "PUT", "/db", nil)
	rev := s.rev(s.text(201, "PUT", "/db/d", `{}`))
	s.text(409, "DELETE", "/db/d?batch=ok&rev=1-a", nil)
	s.text(409, "DELETE", "/db/d?batch=ok", nil)
	res := s.do("DELETE", "/db/d?batch=ok&rev="+rev, nil)
	got, err := io.ReadAll(res.Body)
	apitest.Must(t, err)
	if gone := s.rev(string(got)); res.StatusCode != http.StatusOK || gone == "" || res.Header.Get("ETag") != `"`+gone+`"` {
		t.Errorf("%d %s %q", res.StatusCode, got, res.Header.Get("ETag"))
	}
}

// TestWriteQuorumCounts has more copies asked for than there are.
func TestWriteQuorumCounts(t *testing.T) {
	s := newSite(t, nil)
	s.text(201, "PUT", "/db", nil)
	const body = "--xyz\r\nContent-Disposition: form-data; name=\"_doc\"\r\n\r\n{}\r\n--xyz--"
	form := []string{"Content-Type: multipart/form-data; boundary=xyz", "Referer: " + s.url}
	for i, tc := range []struct {
		query  string
		status int
	}{{"", 201}, {"?w=1", 201}, {"?w=5", 202}, {"?w=0", 400}, {"?w=x", 400}, {"?w=", 400}} {
		s.text(tc.status, "POST", fmt.Sprintf("/db/form%d%s", i, tc.query), body, form...)
		id := fmt.Sprintf("purged%d", i)
		rev := s.rev(s.text(201, "PUT", "/db/"+id, `{}`))
		s.text(tc.status, "POST", "/db/_purge"+tc.query, `{"`+id+`":["`+rev+`"]}`)
	}
}

// TestFormNames has a form whose files have names that the document has
// already: those replace, those that are there twice are refused.
func TestFormNames(t *testing.T) {
	s := newSite(t, nil)
	s.text(201, "PUT", "/db", nil)
	file := func(name, content string) string {
		return "--xyz\r\nContent-Disposition: form-data; name=\"_attachments\"; filename=\"" + name + "\"\r\n\r\n" + content + "\r\n"
	}
	field := func(name, value string) string {
		return "--xyz\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n"
	}
	send := func(status int, body string) string {
		return s.text(status, "POST", "/db/d", body+"--xyz--", "Content-Type: multipart/form-data; boundary=xyz", "Referer: "+s.url)
	}
	rev := s.rev(send(201, field("_doc", "{}")+file("a", "1")+file("b", "2")))
	if got := send(400, field("_rev", rev)+file("c", "3")+file("c", "4")); !strings.Contains(got, `"Duplicate attachments"`) {
		t.Error(got)
	}
	send(201, field("_rev", rev)+file("c", "3")+file("b", "4"))
	got := ""
	for _, name := range []string{"a", "b", "c"} {
		got += s.text(200, "GET", "/db/d/"+name, nil)
	}
	if list := s.text(200, "GET", "/db/d", nil); got != "143" || strings.Count(list, `"stub":true`) != 3 {
		t.Errorf("%s in %s", got, list)
	}
}

func TestPartitionedIDs(t *testing.T) {
	a := nodeAPI(t, nil)
	follow(t, a, []visit{
		{"adm", "PUT", "/p?partitioned=true", "", 201, ""},
		{"adm", "PUT", "/p/x", "{}", 400, `{"error":"illegal_docid","reason":"Doc id must be of form partition:id"}`},
		{"adm", "PUT", "/p/:x", "{}", 400, `{"error":"illegal_partition","reason":"Partition must not be empty"}`},
		{"adm", "PUT", "/p/x:", "{}", 400, `{"error":"illegal_docid","reason":"Document id must not be empty"}`},
		{"adm", "PUT", "/p/x:y/a", "abc", 201, ""},
		{"adm", "PUT", "/p/x/a", "abc", 400, `{"error":"illegal_docid","reason":"Doc id must be of form partition:id"}`},
		{"adm", "PUT", "/p/_design/d", `{"options":{"partitioned":true}}`, 201, ""},
		{"adm", "GET", "/p/_all_docs?partition=x&limit=0", "", 200, ""},
		{"adm", "GET", "/p/_all_docs?partition=", "", 400, `{"error":"illegal_partition","reason":"Partition must not be empty"}`},
		{"adm", "GET", "/p/_partition/x/_all_docs?partition=y", "", 400, "{\"error\":\"bad_request\",\"reason\":\"Conflicting value for `partition` in query string\"}"},
		{"adm", "POST", "/p/_partition/x/_all_docs/queries", `{"queries":[{"limit":0}]}`, 200, ""},
	})
}

// TestDesignDocsNeedAnAdmin checks that an account that may write documents may not write
// design documents, in any way.
func TestDesignDocsNeedAnAdmin(t *testing.T) {
	a := nodeAPI(t, nil)
	const refusal = `{"error":"forbidden","reason":"You are not a db or server admin."}`
	const user = "bob:pw"
	follow(t, a, []visit{
		{"adm", "PUT", "/_users/org.couchdb.user:bob", `{"name":"bob","type":"user","roles":[],"password":"pw"}`, 201, ""},
		{"adm", "PUT", "/db", "", 201, ""},
		{"adm", "PUT", "/db/_security", `{"members":{"roles":[]}}`, 200, ""},
		{"adm", "PUT", "/db/_design/d?new_edits=false", `{"_rev":"1-a"}`, 201, ""},
		{user, "PUT", "/db/doc", `{}`, 201, ""},
		{user, "PUT", "/db/_design/x", `{}`, 403, refusal},
		{user, "POST", "/db", `{"_id":"_design/x"}`, 403, refusal},
		{user, "DELETE", "/db/_design/d?rev=1-a", "", 403, refusal},
		{user, "PUT", "/db/_design/d/a?rev=1-a", "x", 403, refusal},
		{user, "GET", "/db/_design/d", "", 200, `{"_id":"_design/d","_rev":"1-a"}`},
		{user, "POST", "/db/_bulk_docs", `{"docs":[{"_id":"_design/x"}]}`, 201, `[{"id":"_design/x","error":"forbidden","reason":"You are not a db or server admin."}]`},
		{user, "POST", "/db/_bulk_docs", `{"new_edits":false,"docs":[{"_id":"ok","_rev":"1-a"},{"_id":"_design/x","_rev":"1-b"}]}`, 201, `[{"id":"_design/x","rev":"1-b","error":"forbidden","reason":"You are not a db or server admin."}]`},
		{user, "GET", "/db/ok", "", 200, `{"_id":"ok","_rev":"1-a"}`},
		{"", "PUT", "/db/_design/x", `{}`, 401, `{"error":"unauthorized","reason":"You are not a db or server admin."}`},
	})
}

// TestSilentUpload checks that a client which falls silent is not waited for.
func TestSilentUpload(t *testing.T) {
	s := newSite(t, config.Values{"couchdb": {"attachment_writer_timeout": "50"}})
	s.text(201, "PUT", "/db", nil)
	silent, speak := io.Pipe()
	defer func() { apitest.Must(t, speak.Close()) }()
	res := s.do("PUT", "/db/d/a", io.MultiReader(strings.NewReader("abc"), silent), "Content-Type: image/png")
	if got, err := io.ReadAll(res.Body); res.StatusCode != http.StatusInternalServerError || !strings.HasPrefix(string(got), `{"error":"timeout"`) {
		t.Errorf("%d %s %v", res.StatusCode, got, err)
	}
	s.text(201, "PUT", "/db/d/a", "abc", "Content-Type: image/png")
}

// TestSilentBody has bodies of every kind that never come to their end: each is
// answered, and that is the end of the connection.
func TestSilentBody(t *testing.T) {
	s := newSite(t, config.Values{"couchdb": {"attachment_writer_timeout": "50"}})
	s.text(201, "PUT", "/db", nil)
	const (
		asJSON  = "Content-Type: application/json\r\n"
		chunked = "Transfer-Encoding: chunked\r\n\r\n"
		half    = "Content-Length: 1000\r\n\r\n"
	)
	for name, request := range map[string]string{
		"a document":         "PUT /db/d HTTP/1.1\r\n" + asJSON + half + `{"a":`,
		"nothing of it":      "PUT /db/d HTTP/1.1\r\n" + asJSON + half,
		"many documents":     "POST /db/_bulk_docs HTTP/1.1\r\n" + asJSON + chunked + "5\r\n{\"doc",
		"a gzip header":      "POST /db/_bulk_get HTTP/1.1\r\nContent-Encoding: gzip\r\n" + asJSON + half + "\x1f",
		"gzip":               "POST /db/_bulk_get HTTP/1.1\r\nContent-Encoding: gzip\r\n" + asJSON + half + string(zipped(t, noise(500))[:400]),
		"a login":            "POST /_session HTTP/1.1\r\n" + asJSON + half + `{"name":"adm"`,
		"an attachment":      "PUT /db/d/a HTTP/1.1\r\n" + half + "abc",
		"a part of several":  "PUT /db/d HTTP/1.1\r\nContent-Type: multipart/related; boundary=xyz\r\n" + half + "--xyz\r\n\r\n{",
		"a file of a form":   "POST /db/d HTTP/1.1\r\nReferer: http://x/\r\nContent-Type: multipart/form-data; boundary=xyz\r\n" + half + "--xyz\r\n",
		"a chunk that ended": "PUT /db/d HTTP/1.1\r\n" + chunked + "2\r\n{}\r\n",
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		apitest.Must(t, err)
		line, rest, _ := strings.Cut(request, "\r\n")
		_, err = io.WriteString(conn, line+"\r\nHost: x\r\nAuthorization: Basic YWRtOnBhc3M=\r\n"+rest)
		apitest.Must(t, err)
		in := bufio.NewReader(conn)
		res, err := http.ReadResponse(in, nil)
		apitest.Must(t, err)
		got, err := io.ReadAll(res.Body)
		if res.StatusCode != http.StatusInternalServerError || !strings.HasPrefix(string(got), `{"error":"timeout"`) || err != nil {
			t.Errorf("%s: %d %s %v", name, res.StatusCode, got, err)
		}
		if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
			t.Errorf("%s: the connection goes on: %v", name, err)
		}
		apitest.Must(t, conn.Close())
	}
	s.text(404, "GET", "/db/d", nil)
}
