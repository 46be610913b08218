package httpapi

import (
	"strings"
	"testing"

	"divan/cluster/config"
)

// TestRevisionsAreCouchDBs writes through every kind of request and holds the
// revisions, and the digests, to those of a CouchDB 3.5.0.
func TestRevisionsAreCouchDBs(t *testing.T) {
	s := newSite(t, config.Values{})
	s.text(201, "PUT", "/db", nil)
	has := func(text string, parts ...string) {
		t.Helper()
		for _, p := range parts {
			if !strings.Contains(text, p) {
				t.Errorf("%s lacks %s", text, p)
			}
		}
	}
	const first, second, third, fourth = "1-7a7e4b29f3af401e69b6f86e4c26b727", "2-d0df861eb528e79690cd2ff3c4d394f3",
		"3-9b72b0117fa1058c3b8485ca2583dea3", "4-40b25e63cbfd20b8289b4da5d219f383"
	has(s.text(201, "PUT", "/db/a", `{"v":1}`), first)
	has(s.text(201, "PUT", "/db/a?rev="+first, `{ "v" : 2 }`), second)
	has(s.text(200, "DELETE", "/db/a?rev="+second, nil), third)
	has(s.text(201, "PUT", "/db/a", `{"v":4}`), fourth)

	has(s.text(201, "POST", "/db", `{"v":1}`, "Content-Type: application/json"), first)
	has(s.text(201, "COPY", "/db/a?rev="+first, nil, "Destination: b"), first)
	bulk := s.text(201, "POST", "/db/_bulk_docs", `{"docs":[{"_id":"c","v":1},{"_id":"d","a":1.0,"b":1e5,"c":0.1,"d":-0.0,"e":1.5e300,"f":1E2,"g":100},{"a":1,"a":2,"b":3}]}`,
		"Content-Type: application/json")
	has(bulk, first, "1-6abb8a96938dd05ca2341f7e87072118", "1-d76c74eb7f5aa9bbe9f01ebde895887c")
	has(s.text(200, "GET", "/db/d", nil), `"d":0.0,"e":1.5e+300`)
	bulk = s.text(201, "POST", "/db/_bulk_docs", `{"docs":[{"_id":"c","_rev":"`+first+`","v":2},{"_id":"b","_rev":"`+first+`","v":2}]}`, "Content-Type: application/json")
	has(bulk, `"id":"c","rev":"`+second, `"id":"b","rev":"`+second)
	has(s.text(201, "POST", "/db/_bulk_docs", `{"docs":[{"_id":"c","_rev":"`+second+`","_deleted":true}]}`, "Content-Type: application/json"), third)

	has(s.text(201, "PUT", "/db/x/x.bin", "\x00\x01\x02", "Content-Type: application/octet-stream"), "1-9bc760516dca7ce45a07ea27e4fc59f3")
	has(s.text(200, "GET", "/db/x", nil), "md5-uV9n9h67A2GWIteY9F/C0w==")
	const two = `{"v":1,"_attachments":{"b.bin":{"content_type":"application/octet-stream","data":"AAEC"},"a.txt":{"content_type":"text/plain","data":"aGVsbG8gaGVsbG8gaGVsbG8="}}}`
	has(s.text(201, "PUT", "/db/y", two), "1-a4332025608be21fe21035375e7788f6")
	has(s.text(200, "GET", "/db/y?att_encoding_info=true", nil), "md5-EGZM0DR7tfylLvvZCXP1ug==", `"encoded_length":28`)
	has(s.text(201, "COPY", "/db/y", nil, "Destination: y2"), "1-a4332025608be21fe21035375e7788f6")
	has(s.text(201, "PUT", "/db/z", `{"_attachments":{"e.txt":{"content_type":"text/plain","data":""}}}`), "1-cc359127ceabfc0980cff70f78b5e789")
	has(s.text(200, "GET", "/db/z?att_encoding_info=true", nil), "md5-cCkGbCesb17xjWYNV0GXmg==", `"encoded_length":20`)
	has(s.text(201, "PUT", "/db/z2/e.txt", "", "Content-Type: text/plain"), "1-cc359127ceabfc0980cff70f78b5e789")
}
