package httpapi

import (
	"testing"
)

// What clients made for CouchDB were seen to do, beside what the transcripts
// of golden show.

// A local document takes attachments and keeps none, whichever way it comes.
func TestLocalDropsAttachments(t *testing.T) {
	s := newSite(t, nil)
	s.text(201, "PUT", "/db", nil)
	const atts = `"_attachments":{"a.txt":{"content_type":"text/plain","data":"aGVsbG8="}}`
	s.text(201, "PUT", "/db/_local/put", `{"v":1,`+atts+`}`)
	s.text(201, "POST", "/db", `{"_id":"_local/post","v":1,`+atts+`}`)
	s.text(201, "POST", "/db/_bulk_docs", `{"docs":[{"_id":"_local/bulk","v":1,`+atts+`}]}`)
	part := "--xyz\r\n\r\n" + `{"v":1,"_attachments":{"a":{"follows":true,"length":5}}}` + "\r\n--xyz\r\n\r\nhello\r\n--xyz--"
	s.text(201, "PUT", "/db/_local/parts", part, "Content-Type: multipart/related; boundary=xyz")
	for _, id := range []string{"put", "post", "bulk", "parts"} {
		want := `{"_id":"_local/` + id + `","_rev":"0-1","v":1}` + "\n"
		if got := s.text(200, "GET", "/db/_local/"+id+"?attachments=true", nil); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
