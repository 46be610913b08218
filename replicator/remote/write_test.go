package remote

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"divan/cluster/docformat"
	"divan/replicator/endpoint"
	"divan/replicator/spec"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
	"divan/storage/pause"
)

// out is a document on its way, with attachments whose content goes with it.
func out(id string, atts ...storedAtt) *endpoint.Doc {
	d := &endpoint.Doc{ID: id, Path: doc.Path{Start: 2, IDs: []string{rev(2, "b").ID, rev(1, "a").ID}}, Body: []byte(`{"v":1}`)}
	for _, a := range atts {
		d.Atts = append(d.Atts, endpoint.Attachment{Attachment: a.Attachment, Data: a.content})
	}
	return d
}

// following takes the contents of a document out of it.
func following(d *endpoint.Doc) *queue {
	q := &queue{}
	for i := range d.Atts {
		if !d.Atts[i].Stub {
			q.contents = append(q.contents, d.Atts[i].Data)
			d.Atts[i].Data = nil
		}
	}
	return q
}

// queue gives contents, and an error where there is none.
type queue struct {
	contents [][]byte
	closed   int
}

func (q *queue) Next(context.Context) (io.ReadCloser, error) {
	if len(q.contents) == 0 || q.contents[0] == nil {
		return nil, errNoContent
	}
	c := q.contents[0]
	q.contents = q.contents[1:]
	return &queued{bytes.NewReader(c), q}, nil
}

var errNoContent = errors.New("the source has no content")

type queued struct {
	io.Reader
	q *queue
}

func (c *queued) Close() error {
	c.q.closed++
	return nil
}

const bAndA = `"_revisions":{"start":2,"ids":["bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb","aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"]}`

func TestWrite(t *testing.T) {
	deleted := out("gone")
	deleted.Deleted = true
	stub := out("stub", attachment("s", 1, "x", true))
	stub.Atts[0].Stub = true
	docs := []*endpoint.Doc{out(`a"/ü`), deleted, out("att", attachment("a", 2, "hello", true), attachment("b", 1, "", false)), stub}
	var body []byte
	status, answer := 201, "[]"
	with(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ = io.ReadAll(r.Body)
		answerWith(w, status, answer)
	}, func(t *testing.T, p *peer) {
		t.Helper()
		d := p.open(spec.Address{})
		refused, err := d.Write(t.Context(), docs)
		digest := func(d *endpoint.Doc, i int) string { return base64.StdEncoding.EncodeToString(d.Atts[i].Digest[:]) }
		want := `{"new_edits":false,"docs":[{"_id":"a\"/ü","_rev":"` + revB + `","v":1,` + bAndA + `},` +
			`{"_id":"gone","_rev":"` + revB + `","v":1,"_deleted":true,` + bAndA + `},` +
			`{"_id":"att","_rev":"` + revB + `","v":1,` + bAndA + `,"_attachments":{` +
			`"a":{"content_type":"text/plain","revpos":2,"digest":"md5-` + digest(docs[2], 0) + `","data":"aGVsbG8="},` +
			`"b":{"content_type":"text/plain","revpos":1,"digest":"md5-` + digest(docs[2], 1) + `","data":""}}},` +
			`{"_id":"stub","_rev":"` + revB + `","v":1,` + bAndA + `,"_attachments":{` +
			`"s":{"content_type":"text/plain","revpos":1,"digest":"md5-` + digest(stub, 0) + `","length":1,"stub":true}}}]}`
		if err != nil || len(refused) != 0 || string(body) != want {
			t.Errorf("%v %v\n%s\nwant\n%s", refused, err, body, want)
		}
		for _, tc := range []struct {
			status       int
			answer, want string
			kind         fault.Kind
		}{
			{201, `[{"id":"att","rev":"` + revB + `","error":"forbidden","reason":"no"}]`, "att " + revB + " 7 no", 0},
			{201, `[{"ok":true,"id":"x","rev":"` + revB + `"},{"id":"gone","error":"unauthorized","reason":"who"}]`, "gone " + revB + " 6 who", 0},
			{201, `[{"id":"att","rev":"` + revB + `","error":"missing_stub","reason":"m"},{"id":"b","rev":"` + revA + `","error":"odd","reason":7}]`, "att " + revB + " 8 m;b " + revA + " 1 7", 0},
			{201, `[{"id":"att","rev":"` + revB + `","error":"doc_validation","reason":"Bad"}]`, fmt.Sprintf("att %s %d Bad", revB, fault.DocValidation), 0},
			{417, `[{"id":"att","rev":"` + revB + `","error":"forbidden","reason":"no"}]`, "att " + revB + " 7 no", 0},
			{202, `[]`, "", fault.Unavailable},
			{201, `{}`, "", fault.Unavailable},
			{201, `[7]`, "", fault.Unavailable},
			{413, `{"error":"document_too_large","reason":"att"}`, "", fault.RequestTooLarge},
			{401, `{}`, "", fault.Unauthorized},
			{404, `<html>`, "", fault.NotFound},
			{503, ``, "", fault.Unavailable},
		} {
			status, answer = tc.status, tc.answer
			refused, err := d.Write(t.Context(), docs)
			var got []string
			for _, r := range refused {
				got = append(got, fmt.Sprintf("%s %s %d %s", r.ID, r.Rev, fault.KindOf(r.Err), fault.Reason(r.Err)))
			}
			if strings.Join(got, ";") != tc.want || fault.KindOf(err) != tc.kind {
				t.Errorf("%d %s: %v, %v", tc.status, tc.answer, got, err)
			}
		}
		p.requests()
		if _, err := d.Write(t.Context(), nil); err != nil || len(p.requests()) != 0 {
			t.Error("nothing to write is written")
		}
	})
}

// Compressed contents that the server would not compress to the same bytes go
// as they are, and what is refused then is told with the rest.
func TestWriteExactly(t *testing.T) {
	image := attachment("i", 2, "image", true)
	image.ContentType = "image/png"
	docs := []*endpoint.Doc{
		out("same", attachment("a", 2, "hello", true)), out("other", attachment("a", 2, "hello", true).otherwise(), attachment("b", 2, "plain", false)),
		out("image", image), out("refused", image), out("bomb", attachment("a", 2, strings.Repeat("0", maxInflated+1), true)),
	}
	sent := map[string]string{}
	with(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodGet:
			answerWith(w, 200, "{}")
		case strings.HasSuffix(r.URL.Path, "refused"):
			_, _ = io.Copy(io.Discard, r.Body)
			answerWith(w, 403, `{"error":"forbidden","reason":"no"}`)
		case r.Method == http.MethodPut:
			sent[r.URL.Path] = related(t, r)
			answerWith(w, 201, "{}")
		default:
			body, _ := io.ReadAll(r.Body)
			sent[r.URL.Path] = string(body)
			answerWith(w, 201, "[]")
		}
	}, func(t *testing.T, p *peer) {
		t.Helper()
		refused, err := p.open(spec.Address{}).Write(t.Context(), docs)
		if err != nil || len(refused) != 1 || refused[0].ID != "refused" || !fault.Is(refused[0].Err, fault.Forbidden) {
			t.Errorf("%v %v", refused, err)
		}
		if !strings.Contains(sent["/db/_bulk_docs"], `"same"`) || strings.Contains(sent["/db/_bulk_docs"], `"other"`) || len(sent) != 4 {
			t.Errorf("%v", sent)
		}
		if want := fmt.Sprintf(` a=%q`, docs[1].Atts[0].Data); !strings.HasSuffix(sent["/db/other"], want) || !strings.Contains(sent["/db/other"], `"data":"cGxhaW4="`) {
			t.Errorf("%s, want %s", sent["/db/other"], want)
		}
		if want := fmt.Sprintf(` a=%q`, docs[4].Atts[0].Data); !strings.HasSuffix(sent["/db/bomb"], want) {
			t.Errorf("%d bytes of a content that inflates to more than memory may hold", len(sent["/db/bomb"]))
		}
	})
}

// A server that refuses all for the sake of one stub is asked for each half,
// until it is known which one it is.
func TestWriteMissingStub(t *testing.T) {
	var docs []*endpoint.Doc
	for i := range 9 {
		docs = append(docs, out(fmt.Sprint("doc", i)))
	}
	kept := map[string]bool{}
	with(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte(`"doc3"`)) || bytes.Contains(body, []byte(`"doc8"`)) {
			answerWith(w, 412, `{"error":"missing_stub","reason":"Invalid attachment stub in doc for a"}`)
			return
		}
		b, _ := doc.ParseBulk(body, nil)
		for _, e := range b.Docs {
			kept[e.ID] = true
		}
		answerWith(w, 201, "[]")
	}, func(t *testing.T, p *peer) {
		t.Helper()
		refused, err := p.open(spec.Address{}).Write(t.Context(), docs)
		if err != nil || len(refused) != 2 || refused[0].ID != "doc3" || refused[1].ID != "doc8" || !fault.Is(refused[1].Err, fault.MissingStub) || len(kept) != 7 {
			t.Errorf("%v %v, kept %v", refused, err, kept)
		}
	})
}

// related reads what was sent as multipart/related.
func related(t *testing.T, r *http.Request) string {
	t.Helper()
	parts, text, err := docformat.NewRelatedReader(r.Body, r.Header.Get("Content-Type"), docformat.UpTo(1<<20))
	if err != nil {
		t.Fatal(err)
	}
	e, err := doc.ParseEnvelope(text)
	if err != nil {
		t.Fatal(err)
	}
	got := string(text)
	for i := range e.Atts {
		if !e.Atts[i].Follows {
			continue
		}
		part, err := parts.Next(&e.Atts[i])
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(part)
		if err != nil || r.ContentLength >= 0 && int64(len(content)) != docformat.FollowingLength(&e.Atts[i]) {
			t.Errorf("%s: %d bytes, %v", e.Atts[i].Name, len(content), err)
		}
		got += fmt.Sprintf(" %s=%q", e.Atts[i].Name, content)
	}
	parts.Drain()
	return got
}

// Documents with large attachments are sent with them, in the form that the
// server takes.
func TestWriteWith(t *testing.T) {
	zip := attachment("z", 2, "zipped", true)
	zip.Length++ // what a client said that sent it compressed
	for _, pouch := range []bool{false, true} {
		var got, uri string
		var length int64
		with(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/" {
				answerWith(w, 200, map[bool]string{true: `{"express-pouchdb":"Welcome!","version":"4"}`, false: `{"couchdb":"Welcome"}`}[pouch])
				return
			}
			uri, length = r.URL.RequestURI(), r.ContentLength
			got = related(t, r)
			answerWith(w, 201, `{"ok":true}`)
		}, func(t *testing.T, p *peer) {
			t.Helper()
			d := p.open(spec.Address{})
			for range 2 {
				one := out("_design/a b", zip, attachment("small", 1, "in", false), attachment("plain", 2, strings.Repeat("x", 300_000), false))
				stub := attachment("stub", 1, "there", false)
				one.Atts = append(one.Atts, endpoint.Attachment{Attachment: stub.Attachment, Stub: true})
				contents := following(one)
				one.Atts[1].Data = contents.contents[1]
				contents.contents = slices.Delete(contents.contents, 1, 2)
				if err := d.WriteWith(t.Context(), one, contents); err != nil {
					t.Fatal(err)
				}
				if contents.closed != 2 || pouch != (length == -1) || !pouch && length < 300_000 || uri != "/db/_design/a%20b?new_edits=false" {
					t.Errorf("closed %d, %d bytes, %s", contents.closed, length, uri)
				}
				z := fmt.Sprintf(`"length":7,"follows":true,"encoding":"gzip","encoded_length":%d}`, zip.StoredLength)
				content := string(zip.content)
				if pouch {
					z, content = `"length":7,"follows":true}`, "zipped"
				}
				if !strings.Contains(got, z) || !strings.Contains(got, fmt.Sprintf(` z=%q plain="xxx`, content)) || !strings.Contains(got, `"data":"aW4="`) || !strings.Contains(got, `"length":5,"stub":true}`) {
					t.Errorf("pouch %v: %.1500s", pouch, got)
				}
			}
			if n := len(p.requests()); n != 3 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// The refusal of a document is told from trouble with the source, the account
// or the connection; nothing is left behind in any case.
func TestWriteWithRefused(t *testing.T) {
	big := strings.Repeat("0123456789", 200_000)
	for _, tc := range []struct {
		name   string
		answer func(w http.ResponseWriter, r *http.Request)
		want   func(error) bool
	}{
		{"forbidden by a function", func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				answerWith(w, 200, infoText)
				return
			}
			answerWith(w, 403, `{"error":"forbidden","reason":"no"}`)
		}, func(err error) bool { return fault.Is(err, fault.Forbidden) && fault.Reason(err) == "no" }},
		{"account forbidden", func(w http.ResponseWriter, _ *http.Request) {
			answerWith(w, 403, `{"error":"forbidden","reason":"no"}`)
		}, endpoint.Retryable},
		{"too large", func(w http.ResponseWriter, _ *http.Request) {
			answerWith(w, 413, `{"error":"too_large","reason":"no"}`)
		}, func(err error) bool { return fault.Is(err, fault.RequestTooLarge) }},
		{"stub", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			answerWith(w, 412, `{"error":"missing_stub","reason":"no"}`)
		}, func(err error) bool { return fault.Is(err, fault.MissingStub) }},
		{"unauthorized by a function", func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				answerWith(w, 200, infoText)
				return
			}
			answerWith(w, 401, `{"error":"unauthorized","reason":"no"}`)
		}, func(err error) bool { return fault.Is(err, fault.Unauthorized) && fault.Reason(err) == "no" }},
		{"account gone", func(w http.ResponseWriter, _ *http.Request) {
			answerWith(w, 401, `{"error":"unauthorized","reason":"no"}`)
		}, endpoint.Retryable},
		{"failing", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }, endpoint.Retryable},
		{"overloaded", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }, endpoint.Retryable},
		{"accepted", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			answerWith(w, 202, `{}`)
		}, endpoint.Retryable},
		{"the page of something in between", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			answerWith(w, 200, "<html>Log in first.</html>")
		}, endpoint.Retryable},
		{"cut", func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.CopyN(io.Discard, r.Body, 100_000)
			panic(http.ErrAbortHandler)
		}, endpoint.Retryable},
		{"stuck", func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.CopyN(io.Discard, r.Body, 100_000)
			_ = pause.For(r.Context(), time.Hour)
		}, endpoint.Retryable},
	} {
		t.Run(tc.name, func(t *testing.T) {
			with(t, tc.answer, func(t *testing.T, p *peer) {
				t.Helper()
				one := out("doc", attachment("a", 2, big, false), attachment("b", 2, big, false))
				q := following(one)
				given := len(q.contents)
				if err := p.open(spec.Address{}).WriteWith(t.Context(), one, q); !tc.want(err) {
					t.Errorf("error: %v", err)
				}
				if given-len(q.contents) != q.closed {
					t.Errorf("%d contents are open", given-len(q.contents)-q.closed)
				}
			})
		})
	}
	t.Run("source", func(t *testing.T) {
		with(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			answerWith(w, 400, "{}")
		}, func(t *testing.T, p *peer) {
			t.Helper()
			one := out("doc", attachment("a", 2, big, false), attachment("b", 2, big, false))
			q := following(one)
			q.contents[1] = nil
			if err := p.open(spec.Address{}).WriteWith(t.Context(), one, q); !errors.Is(err, errNoContent) {
				t.Errorf("error: %v", err)
			}
		})
	})
}

func TestMissing(t *testing.T) {
	var body []byte
	answer := `{"a":{"missing":["` + revB + `","9-x"],"possible_ancestors":["` + revA + `"]},"ü":{"missing":[]}}`
	with(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ = io.ReadAll(r.Body)
		answerWith(w, 200, answer)
	}, func(t *testing.T, p *peer) {
		t.Helper()
		d := p.open(spec.Address{})
		x, err := doc.ParseRev("9-x")
		if err != nil {
			t.Fatal(err)
		}
		asked := []shard.IDRevs{{ID: "a", Revs: []doc.Rev{rev(2, "b"), rev(1, "a"), x}}, {ID: "ü", Revs: []doc.Rev{rev(1, "a")}}}
		got, err := d.Missing(t.Context(), asked)
		if err != nil || len(got) != 1 || got[0].ID != "a" || len(got[0].Missing) != 2 || got[0].Missing[1].String() != "9-x" || got[0].PossibleAncestors[0] != rev(1, "a") {
			t.Errorf("%+v %v", got, err)
		}
		if want := `{"a":["` + revB + `","` + revA + `","9-x"],"ü":["` + revA + `"]}`; string(body) != want {
			t.Errorf("%s, want %s", body, want)
		}
		// A target that wants documents or revisions that it was not asked about does not get them.
		answer = `{"secret":{"missing":["` + revA + `"]},"a":{"missing":["1-other","9-x","` + revB + `"]}}`
		again := append(asked, shard.IDRevs{ID: "a", Revs: []doc.Rev{rev(3, "c")}})
		if got, err = d.Missing(t.Context(), again); err != nil || len(got) != 1 || got[0].ID != "a" || !slices.Equal(got[0].Missing, []doc.Rev{x, rev(2, "b")}) {
			t.Errorf("%+v %v", got, err)
		}
		for _, answer = range []string{"", "[]", `{"a":{"missing":7}}`, `{"a":{"missing":["x"]}}`} {
			if got, err := d.Missing(t.Context(), asked); err == nil {
				t.Errorf("%s: %v", answer, got)
			}
		}
	})
}

// A server that says one start time here and another there is one database all
// the same; one that is made anew is not.
func TestCommit(t *testing.T) {
	for _, tc := range []struct {
		name, commit string
		status       int
		want         string
	}{
		{"CouchDB", `{"ok":true,"instance_start_time":"1400000000"}`, 201, "1400000000"},
		{"PouchDB Server", `{"ok":true,"instance_start_time":"0"}`, 201, "1400000000"},
		{"none", `{"error":"not_found"}`, 404, "1400000000"},
	} {
		with(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				answerWith(w, tc.status, tc.commit)
				return
			}
			answerWith(w, 200, infoText)
		}, func(t *testing.T, p *peer) {
			t.Helper()
			d := p.open(spec.Address{})
			if _, err := d.Info(t.Context()); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if got, err := d.Commit(t.Context()); got != tc.want || err != nil {
					t.Errorf("%s: %q %v", tc.name, got, err)
				}
			}
		})
	}
}

// A slow source is no silence of the server.
func TestWriteWithSlowSource(t *testing.T) {
	with(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		answerWith(w, 201, `{"ok":true}`)
	}, func(t *testing.T, p *peer) {
		t.Helper()
		one := out("doc", attachment("a", 2, "0123456789", false))
		q := following(one)
		if err := p.open(spec.Address{}).WriteWith(t.Context(), one, &slow{q}); err != nil {
			t.Error(err)
		}
	})
}

// slow gives a byte in ten minutes.
type slow struct{ *queue }

func (s *slow) Next(ctx context.Context) (io.ReadCloser, error) {
	r, err := s.queue.Next(ctx)
	return &slowly{r, ctx}, err
}

type slowly struct {
	io.ReadCloser
	ctx context.Context
}

func (s *slowly) Read(p []byte) (int, error) {
	_ = pause.For(s.ctx, 10*time.Minute)
	return s.ReadCloser.Read(p[:1])
}
