package httpapi

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"divan/cluster/config"
	"divan/httpapi/apitest"
	"divan/storage/storagetest"
)

// TestMemoryOfHeldAnswers: the rows of a search that a client has not taken yet are memory of the
// node. While there is none, more of it is refused and small answers are given.
func TestMemoryOfHeldAnswers(t *testing.T) {
	storagetest.SkipShort(t)
	s := newSite(t, config.Values{"chttpd": {"max_body_memory": "25000000"}})
	s.text(201, "PUT", "/db?q=1", nil)
	s.text(201, "PUT", "/db/_design/d", `{"indexes":{"i":{"index":"function (doc) { index('default', 'all ' + doc._id); index('s', doc.s, {store: true, index: false}); }"}},`+
		`"nouveau":{"i":{"index":"function (doc) { index('text', 'default', 'all ' + doc._id); index('stored', 's', doc.s); }"}}}`)
	s.text(200, "PUT", "/db/_security", `{"members":{"roles":[]}}`)
	const docs, size = 24, 500_000
	for i := range docs {
		s.text(201, "PUT", fmt.Sprintf("/db/d%d", i), fmt.Sprintf(`{"s":%q}`, strings.Repeat("x", size)))
	}
	for _, path := range []string{"/db/_design/d/_search/i", "/db/_design/d/_nouveau/i"} {
		if got := s.text(200, "GET", path+"?q=d1", nil); !strings.Contains(got, "xxx") {
			t.Fatalf("%s: no stored field: %.300s", path, got)
		}
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		apitest.Must(t, err)
		_, err = io.WriteString(conn, "GET "+path+"?q=all&limit=24 HTTP/1.1\r\nHost: x\r\nAuthorization: Basic YWRtOnBhc3M=\r\n\r\n")
		apitest.Must(t, err)
		_, err = io.ReadFull(conn, make([]byte, 100)) // the answer has begun
		apitest.Must(t, err)
		if n := s.api.Memory.Used(); n < docs*size-16<<10 {
			t.Errorf("%s: %d bytes are counted of an answer that waits", path, n)
		}
		res := s.do("GET", path+"?q=all&limit=24", nil)
		if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") != "1" {
			t.Errorf("%s: a second answer: %d %v", path, res.StatusCode, res.Header)
		}
		// The account gets no more, and a client without one gets its share beside it.
		if res := s.do("GET", path+"?q=all&limit=8", nil); res.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("%s: a third of it: %d", path, res.StatusCode)
		}
		s.text(200, "GET", path+"?q=all&limit=8", nil, "Authorization: ")
		s.text(200, "GET", path+"?q=d1", nil)
		apitest.Must(t, conn.Close())
		for s.api.Memory.Used() > 0 { // it is over
			<-time.After(time.Millisecond)
		}
		if got := s.text(200, "GET", path+"?q=all&limit=24", nil); strings.Count(got, strings.Repeat("x", size)) != docs {
			t.Errorf("%s: the answer has %d bytes", path, len(got))
		}
	}
	if n := s.api.Memory.Used(); n != 0 {
		t.Errorf("%d bytes are taken with no request under way", n)
	}
}

// TestMemoryOfRanges: what the ranges of a search have found counts until it is merged, and not
// only what of it is in the answer.
func TestMemoryOfRanges(t *testing.T) {
	storagetest.SkipShort(t)
	s := newSite(t, config.Values{"chttpd": {"max_body_memory": "16000000"}})
	s.text(201, "PUT", "/db?q=8", nil)
	s.text(201, "PUT", "/db/_design/d", `{"indexes":{"i":{"index":"function (doc) { index('default', 'all'); index('g', doc._id); index('s', doc.s, {store: true, index: false}); }"}}}`)
	for i := range 64 {
		s.text(201, "PUT", fmt.Sprintf("/db/d%d", i), fmt.Sprintf(`{"s":%q}`, strings.Repeat("x", 500_000)))
	}
	for _, more := range []string{"", "&group_field=g&group_limit=40"} {
		if got := s.text(400, "GET", "/db/_design/d/_search/i?q=all&limit=4"+more, nil); !strings.Contains(got, "max_body_memory") {
			t.Error(got)
		}
		s.text(200, "GET", "/db/_design/d/_search/i?q=all&limit=1"+strings.Replace(more, "40", "4", 1), nil)
	}
	if n := s.api.Memory.Used(); n != 0 {
		t.Errorf("%d bytes are taken with no request under way", n)
	}
}

// TestMemoryOfTextHits: a refusal of memory for the hits of a _find has its own name, not that of a
// query that is wrong.
func TestMemoryOfTextHits(t *testing.T) {
	s := newSite(t, config.Values{"chttpd": {"max_body_memory": "40000"}})
	s.text(201, "PUT", "/db?q=1", nil)
	s.text(200, "POST", "/db/_index", `{"index":{},"type":"text"}`)
	for i := range 300 {
		s.text(201, "PUT", fmt.Sprintf("/db/%s%d", strings.Repeat("d", 300), i), `{"t":"all"}`)
	}
	if got := s.text(400, "POST", "/db/_find", `{"selector":{"$text":"all"},"limit":200}`); !strings.Contains(got, `"too_large"`) {
		t.Error(got)
	}
	s.text(201, "PUT", "/db/one", `{"t":"one"}`)
	s.text(200, "POST", "/db/_find", `{"selector":{"$text":"one"}}`)
	if n := s.api.Memory.Used(); n != 0 {
		t.Errorf("%d bytes are taken with no request under way", n)
	}
}

// TestMemoryOfWindows: documents that were read together and wait for the client are memory of the
// request.
func TestMemoryOfWindows(t *testing.T) {
	storagetest.SkipShort(t)
	s := newSite(t, config.Values{"chttpd": {"max_body_memory": "100000000"}})
	s.text(201, "PUT", "/db?q=1", nil)
	s.text(201, "PUT", "/db/_design/d", `{"views":{"v":{"map":"function (doc) { emit(null, {_id: doc._id.replace(/^d/, 'd')}); }"}},`+
		`"indexes":{"i":{"index":"function (doc) { if (doc.t) index('default', doc.t); }"}}}`)
	s.text(200, "POST", "/db/_index", `{"index":{},"type":"text"}`)
	const docs, size = 48, 500_000
	var keys, entries []string
	for i := range docs {
		s.text(201, "PUT", fmt.Sprintf("/db/d%d", i), fmt.Sprintf(`{"t":"all","s":%q}`, strings.Repeat("x", size)))
		keys, entries = append(keys, fmt.Sprintf("%q", fmt.Sprint("d", i))), append(entries, fmt.Sprintf(`{"id":"d%d"}`, i))
	}
	// Windows go by the size of the one before: how much of one waits is between a document and 16.
	for path, body := range map[string]string{
		"/db/_all_docs?include_docs=true":         `{"keys":[` + strings.Join(keys, ",") + `]}`,
		"/db/_all_docs/queries":                   `{"queries":[{"include_docs":true,"keys":[` + strings.Join(keys, ",") + `]}]}`,
		"/db/_bulk_get":                           `{"docs":[` + strings.Join(entries, ",") + `]}`,
		"/db/_design/d/_view/v?include_docs=true": `{}`,
		"/db/_find":                               `{"selector":{"$text":"all"},"limit":48}`,
		"/db/_design/d/_search/i":                 `{"q":"all","limit":48,"include_docs":true}`,
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		apitest.Must(t, err)
		_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Basic YWRtOnBhc3M=\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
		apitest.Must(t, err)
		begin := make([]byte, 3*size) // the first window is being written
		apitest.Must(t, conn.SetDeadline(time.Now().Add(time.Minute)))
		n, err := io.ReadFull(conn, begin)
		if err != nil {
			t.Fatalf("%s: %v after %d bytes: %.500s", path, err, n, begin[:n])
		}
		apitest.Must(t, err)
		if n := s.api.Memory.Used(); n < size {
			t.Errorf("%s: %d bytes are counted of the documents that wait", path, n)
		}
		apitest.Must(t, conn.Close())
		for s.api.Memory.Used() > 0 { // it is over
			<-time.After(time.Millisecond)
		}
		if got := s.text(200, "POST", path, body); strings.Count(got, strings.Repeat("x", size)) != docs {
			t.Errorf("%s: the answer has %d bytes", path, len(got))
		}
	}
}

// TestLargeDocumentsBehindSmallOnes: a window that is chosen by the size of small documents is cut
// short before large ones; the answer is whole, also where there is no space for a window.
func TestLargeDocumentsBehindSmallOnes(t *testing.T) {
	storagetest.SkipShort(t)
	for _, values := range []config.Values{nil, {"chttpd": {"max_body_memory": "16000000"}}} {
		largeBehindSmall(t, newSite(t, values))
	}
}

func largeBehindSmall(t *testing.T, s *site) {
	t.Helper()
	s.text(201, "PUT", "/db?q=2", nil)
	s.text(201, "PUT", "/db/_design/d", `{"views":{"v":{"map":"function (doc) { emit(doc.n, {_id: 'd' + doc.n}); emit(doc.n, null); }"}},`+
		`"indexes":{"i":{"index":"function (doc) { index('default', 'all'); index('n', doc.n); }"}}}`)
	s.text(200, "POST", "/db/_index", `{"index":{"fields":["n"]}}`)
	const small, docs, size = 40, 52, 1_500_000
	var keys, entries, backwards []string
	for i := range docs {
		text := ""
		if i >= small {
			text = strings.Repeat("x", size)
		}
		s.text(201, "PUT", fmt.Sprintf("/db/d%d", i), fmt.Sprintf(`{"n":%d,"s":%q}`, i, text))
		keys, entries = append(keys, fmt.Sprintf("%q", fmt.Sprint("d", i))), append(entries, fmt.Sprintf(`{"id":"d%d"}`, i))
		backwards = append([]string{entries[i]}, backwards...)
	}
	for _, rev := range []string{"a", "b", "c", "d"} { // of one document, more than what is read without memory
		s.text(201, "PUT", "/db/d51?new_edits=false", fmt.Sprintf(`{"n":51,"s":%q,"_rev":"1-%s"}`, strings.Repeat("x", size), rev))
	}
	whole := regexp.MustCompile(`"_id":"d(\d+)","_rev":"[^"]+","n":\d+,"s":"`)
	for _, tc := range []struct {
		path, body string
		times      int
		order      bool
	}{
		{"/db/_all_docs?include_docs=true", `{"keys":[` + strings.Join(keys, ",") + `]}`, 1, true},
		{"/db/_bulk_get", `{"docs":[` + strings.Join(entries, ",") + `]}`, 1, true},
		{"/db/_bulk_get", `{"docs":[` + strings.Join(backwards, ",") + `]}`, 1, false},
		{"/db/_design/d/_view/v?include_docs=true", `{}`, 2, true},
		{"/db/_find", `{"selector":{"n":{"$gte":0}},"limit":52,"r":1}`, 1, true},
		{"/db/_find", `{"selector":{"n":{"$gte":0}},"limit":52,"r":2}`, 1, true},
		{"/db/_design/d/_search/i", `{"q":"all","limit":52,"include_docs":true,"sort":"n"}`, 1, true},
	} {
		got := s.text(200, "POST", tc.path, tc.body)
		seen := map[string]int{}
		last := -1
		for _, at := range whole.FindAllStringSubmatchIndex(got, -1) {
			id := got[at[2]:at[3]]
			n, err := strconv.Atoi(id)
			apitest.Must(t, err)
			bytes := strings.IndexByte(got[at[1]:], '"')
			if seen[id]++; tc.order && n < last || (n >= small) != (bytes == size) {
				t.Errorf("%s: d%d behind d%d with %d bytes", tc.path, n, last, bytes)
			}
			last = n
		}
		leaves := 5
		if tc.path != "/db/_bulk_get" {
			leaves = tc.times
		}
		for i := range docs {
			want := tc.times
			if i == 51 {
				want = leaves
			}
			if n := seen[strconv.Itoa(i)]; n != want {
				t.Errorf("%s: d%d is there %d times, not %d", tc.path, i, n, want)
			}
		}
	}
	if got := s.text(200, "GET", "/db/d51?open_revs=all", nil); strings.Count(got, strings.Repeat("x", size)) != 5 {
		t.Errorf("open_revs: %d bytes", len(got))
	}
	if n := s.api.Memory.Used(); n != 0 {
		t.Errorf("%d bytes are taken with no request under way", n)
	}
}

// TestMemoryOfWrittenEntries: an entry of _bulk_get has the memory again that those before it took,
// which are written.
func TestMemoryOfWrittenEntries(t *testing.T) {
	s := newSite(t, config.Values{"chttpd": {"max_body_memory": "24000000"}})
	s.text(201, "PUT", "/db?q=1", nil)
	const leaves, size = 110, 100_000
	for _, id := range []string{"a", "b"} {
		var docs []string
		for i := range leaves {
			docs = append(docs, fmt.Sprintf(`{"_id":%q,"_rev":"1-%032x","s":%q}`, id, i+1, strings.Repeat("x", size)))
			if len(docs) == 22 {
				s.text(201, "POST", "/db/_bulk_docs", `{"new_edits":false,"docs":[`+strings.Join(docs, ",")+`]}`)
				docs = nil
			}
		}
	}
	got := s.text(200, "POST", "/db/_bulk_get", `{"docs":[{"id":"a"},{"id":"none"},{"id":"b"}]}`)
	if n := strings.Count(got, strings.Repeat("x", size)); n != 2*leaves {
		t.Errorf("%d of %d revisions in %d bytes", n, 2*leaves, len(got))
	}
	if n := s.api.Memory.Used(); n != 0 {
		t.Errorf("%d bytes are taken with no request under way", n)
	}
}

// TestLinkedDocumentsOfRanges: the linked documents that ranges hold for their next rows give way
// to the one that is needed now.
func TestLinkedDocumentsOfRanges(t *testing.T) {
	storagetest.SkipShort(t)
	s := newSite(t, config.Values{"chttpd": {"max_body_memory": "16000000"}})
	s.text(201, "PUT", "/db?q=8", nil)
	s.text(201, "PUT", "/db/_design/d", `{"views":{"v":{"map":"function (doc) { if (doc.to) emit(doc.n, {_id: doc.to}); }"}}}`)
	const links = 64
	for i := range 8 {
		s.text(201, "PUT", fmt.Sprintf("/db/linked%d", i), fmt.Sprintf(`{"s":%q}`, strings.Repeat("x", 500_000*(1+7*(i/7)))))
	}
	for i := range links {
		s.text(201, "PUT", fmt.Sprintf("/db/d%d", i), fmt.Sprintf(`{"n":%d,"to":"linked%d"}`, i, i%8))
	}
	got := s.text(200, "GET", "/db/_design/d/_view/v?include_docs=true", nil)
	if n := strings.Count(got, `"_id":"linked`) - links; n != links { // in the value, too
		t.Errorf("%d documents in %d bytes", n, len(got))
	}
	if n := s.api.Memory.Used(); n != 0 {
		t.Errorf("%d bytes are taken with no request under way", n)
	}
}

// TestHeldAnswerThatNeverFits: an answer that is larger than all the memory there is for answers
// is refused for good.
func TestHeldAnswerThatNeverFits(t *testing.T) {
	s := newSite(t, config.Values{"chttpd": {"max_body_memory": "4000000"}})
	s.text(201, "PUT", "/db?q=1", nil)
	s.text(201, "PUT", "/db/_design/d", `{"indexes":{"i":{"index":"function (doc) { index('default', 'all'); index('s', doc.s, {store: true, index: false}); }"}}}`)
	for i := range 10 {
		s.text(201, "PUT", fmt.Sprintf("/db/d%d", i), fmt.Sprintf(`{"s":%q}`, strings.Repeat("x", 500_000)))
	}
	if got := s.text(400, "GET", "/db/_design/d/_search/i?q=all", nil); !strings.Contains(got, "max_body_memory") {
		t.Error(got)
	}
	s.text(200, "GET", "/db/_design/d/_search/i?q=all&limit=2", nil)
	if n := s.api.Memory.Used(); n != 0 {
		t.Errorf("%d bytes are taken with no request under way", n)
	}
}

// TestMemoryOfLargeEntry: an entry of _bulk_get of any size is counted while it waits for its
// client, and those that were read with it are read again; one without space is refused alone.
func TestMemoryOfLargeEntry(t *testing.T) {
	storagetest.SkipShort(t)
	s := newSite(t, config.Values{"chttpd": {"max_body_memory": "40000000"}})
	s.text(201, "PUT", "/db?q=2", nil)
	const size = 1_000_000
	leaves := func(id string, n int) {
		for i := range n {
			s.text(201, "PUT", "/db/"+id+"?new_edits=false", fmt.Sprintf(`{"s":%q,"_rev":"1-%032x"}`, strings.Repeat("x", size), i+1))
		}
	}
	leaves("large", 21)
	leaves("beside", 3)
	leaves("never", 30)
	body := `{"docs":[{"id":"large"},{"id":"beside"},{"id":"none"},{"id":"large","rev":"7-a"},{"id":"beside"},{"id":"never"},{"id":"beside"}]}`
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	apitest.Must(t, err)
	_, err = fmt.Fprintf(conn, "POST /db/_bulk_get HTTP/1.1\r\nHost: x\r\nAuthorization: Basic YWRtOnBhc3M=\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	apitest.Must(t, err)
	_, err = io.ReadFull(conn, make([]byte, size/2)) // the first entry is being written
	apitest.Must(t, err)
	if n := s.api.Memory.Used(); n < 21*size-16<<10 {
		t.Errorf("%d bytes are counted of an entry that waits", n)
	}
	apitest.Must(t, conn.Close())
	for s.api.Memory.Used() > 0 { // it is over
		<-time.After(time.Millisecond)
	}
	got := s.text(200, "POST", "/db/_bulk_get", body)
	if n := strings.Count(got, strings.Repeat("x", size)); n != 21+3*3 {
		t.Errorf("%d revisions", n)
	}
	refused, missing := strings.Count(got, `"error":"too_large"`), strings.Count(got, `"error":"not_found"`)
	if refused != 1 || missing != 2 || !strings.Contains(got, `{"id":"never","docs":[{"error":{"id":"never","rev":"undefined","error":"too_large"`) {
		t.Errorf("%d refused, %d missing: …%s", refused, missing, regexp.MustCompile(`x{9,}`).ReplaceAllString(got, "x"))
	}
	if n := s.api.Memory.Used(); n != 0 {
		t.Errorf("%d bytes are taken with no request under way", n)
	}
}
