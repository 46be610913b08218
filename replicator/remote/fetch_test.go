package remote

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/md5"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"divan/cluster/docformat"
	"divan/replicator/endpoint"
	"divan/replicator/spec"
	"divan/storage/doc"
	"divan/storage/fault"
)

// stored is a revision that a peer has.
type stored struct {
	id   string
	path doc.Path
	atts []storedAtt
}

type storedAtt struct {
	doc.Attachment
	content []byte // as stored
}

func attachment(name string, revpos uint64, content string, zip bool) storedAtt {
	a := storedAtt{doc.Attachment{Name: name, ContentType: "text/plain", RevPos: revpos, Length: int64(len(content)), Gzip: zip}, []byte(content)}
	if zip {
		a.content, _ = new(Network).compress(a.content)
	}
	return a.as(a.content)
}

// as is the attachment with other bytes stored.
func (a storedAtt) as(content []byte) storedAtt {
	a.content, a.StoredLength, a.Digest = content, int64(len(content)), md5.Sum(content)
	return a
}

// otherwise is the attachment as a server stores it that compresses in
// another way.
func (a storedAtt) otherwise() storedAtt {
	var b bytes.Buffer
	r, _ := gzip.NewReader(bytes.NewReader(a.content))
	z, _ := gzip.NewWriterLevel(&b, gzip.NoCompression)
	_, _ = io.Copy(z, r)
	_ = z.Close()
	return a.as(b.Bytes())
}

// json is the document as a server sends it; follows: contents come behind it.
func (s *stored) json(follows bool, since []doc.Rev) string {
	if follows {
		return s.form("follows", since)
	}
	return s.form("stub", since)
}

// form is json with contents as "follows", "data", or not at all.
func (s *stored) form(how string, since []doc.Rev) string {
	text := doc.AppendHead(nil, doc.Splice{ID: s.id, Rev: s.path.Rev(), Body: []byte(`{"error":"no","missing":1,"ok":{}}`)})
	text = append(text, `,"_revisions":`...)
	text = s.path.AppendJSON(text)
	for i := range s.atts {
		if i == 0 {
			text = append(text, `,"_attachments":{`...)
		} else {
			text = append(text, ',')
		}
		text = s.atts[i].AppendMember(text)
		text = fmt.Appendf(text, `,"length":%d`, s.atts[i].Length)
		switch {
		case how == "data" && s.fresh(i, since):
			content := s.atts[i].content
			if s.atts[i].Gzip {
				z, _ := gzip.NewReader(bytes.NewReader(content))
				content, _ = io.ReadAll(z)
			}
			text = fmt.Appendf(text, `,"data":%q`, base64.StdEncoding.EncodeToString(content))
		case how == "follows" && s.fresh(i, since):
			text = append(text, `,"follows":true`...)
		default:
			text = append(text, `,"stub":true`...)
		}
		if s.atts[i].Gzip {
			text = fmt.Appendf(text, `,"encoding":"gzip","encoded_length":%d`, s.atts[i].StoredLength)
		}
		text = append(text, '}')
	}
	if len(s.atts) > 0 {
		text = append(text, '}')
	}
	return string(append(text, '}'))
}

func (s *stored) fresh(i int, since []doc.Rev) bool {
	return !slices.ContainsFunc(since, func(r doc.Rev) bool { return s.atts[i].RevPos <= r.Pos })
}

// old is a server with documents, of which some tell what kind it is.
type old struct {
	docs    []*stored
	inline  bool // _bulk_get knows attachments
	noBulk  int  // status of _bulk_get; 0: it is there
	arrays  bool // open_revs is answered as JSON, as PouchDB Server does
	bare    bool // parts of attachments have no headers, as in CouchDB 1.x
	stubs   bool // multipart/mixed is without contents
	chunked bool // the boundary is quoted, and the parts have a preamble
}

func (o *old) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, _ := url.PathUnescape(strings.TrimPrefix(r.URL.EscapedPath(), "/db/"))
	switch {
	case len(r.URL.RequestURI()) > maxURL:
		w.WriteHeader(http.StatusRequestURITooLong)
	case path == "_bulk_get" && o.noBulk != 0:
		answerWith(w, o.noBulk, `{"error":"e","reason":"r"}`)
	case path == "_bulk_get":
		o.bulkGet(w, r)
	case r.URL.Query().Has("open_revs"):
		o.openRevs(w, r, path)
	default:
		o.attachment(w, r, path)
	}
}

func (o *old) find(id string, rev doc.Rev) *stored {
	for _, s := range o.docs {
		if s.id == id && s.path.Rev() == rev {
			return s
		}
	}
	return nil
}

func (o *old) bulkGet(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	_, _ = io.WriteString(w, `{"results": [`)
	i := 0
	_ = doc.EachElement(doc.Lookup(body, "docs"), func(v []byte) error {
		id, _ := doc.Unquote(doc.Lookup(v, "id"))
		text, _ := doc.Unquote(doc.Lookup(v, "rev"))
		rev, _ := doc.ParseRev(text)
		if i++; i > 1 {
			_, _ = io.WriteString(w, ",")
		}
		s := o.find(id, rev)
		if s == nil {
			_, _ = fmt.Fprintf(w, `{"id":%q,"docs":[{"error":{"id":%q,"rev":%q,"error":"not_found","reason":"missing"}}]}`, id, id, text)
			return nil
		}
		how := "stub"
		var since []doc.Rev
		if list := doc.Lookup(v, "atts_since"); o.inline && r.URL.Query().Get("attachments") == "true" {
			how = "data"
			if list != nil {
				since, _ = docformat.ParseRevs(list)
			}
		}
		_, _ = fmt.Fprintf(w, `{"id":%q,"docs":[{"ok":%s}]}`, id, s.form(how, since))
		return nil
	})
	_, _ = io.WriteString(w, "]}\n")
}

func (o *old) openRevs(w http.ResponseWriter, r *http.Request, id string) {
	revs, _ := docformat.ParseRevs([]byte(r.URL.Query().Get("open_revs")))
	since, _ := docformat.ParseRevs([]byte(r.URL.Query().Get("atts_since")))
	if o.arrays {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "[")
		for i, rev := range revs {
			if i > 0 {
				_, _ = io.WriteString(w, ",")
			}
			if s := o.find(id, rev); s != nil {
				_, _ = fmt.Fprintf(w, `{"ok":%s}`, s.json(false, nil))
			} else {
				_, _ = fmt.Fprintf(w, `{"missing":%q}`, rev)
			}
		}
		_, _ = io.WriteString(w, "]")
		return
	}
	w.Header().Set("Content-Type", `multipart/mixed; boundary="out side"`)
	if o.chunked {
		w.Header().Set("Content-Type", `multipart/mixed;boundary=outside`)
	}
	outer := map[bool]string{false: "out side", true: "outside"}[o.chunked]
	_, _ = io.WriteString(w, "--"+outer)
	for _, rev := range revs {
		s := o.find(id, rev)
		switch {
		case s == nil:
			_, _ = fmt.Fprintf(w, "\r\nContent-Type: application/json; error=\"true\"\r\n\r\n{\"missing\":%q}", rev)
		case o.stubs || !slices.ContainsFunc(s.atts, func(a storedAtt) bool {
			return s.fresh(slices.IndexFunc(s.atts, func(b storedAtt) bool { return a.Name == b.Name }), since)
		}):
			_, _ = fmt.Fprintf(w, "\r\nContent-Type: application/json\r\n\r\n%s", s.json(false, nil))
		default:
			o.related(w, s, since)
		}
		_, _ = io.WriteString(w, "\r\n--"+outer)
	}
	_, _ = io.WriteString(w, "--")
}

func (o *old) related(w io.Writer, s *stored, since []doc.Rev) {
	_, _ = fmt.Fprintf(w, "\r\nContent-Type: multipart/related; boundary=\"inside\"\r\n\r\n--inside\r\nContent-Type: application/json\r\n\r\n%s", s.json(true, since))
	for i, a := range s.atts {
		if !s.fresh(i, since) {
			continue
		}
		head := "\r\nContent-Disposition: attachment; filename=\"" + a.Name + "\"\r\nContent-Encoding: gzip"
		if o.bare {
			head = ""
		}
		_, _ = fmt.Fprintf(w, "\r\n--inside%s\r\n\r\n%s", head, a.content)
	}
	_, _ = io.WriteString(w, "\r\n--inside--")
}

func (o *old) attachment(w http.ResponseWriter, r *http.Request, path string) {
	rev, err := doc.ParseRev(r.URL.Query().Get("rev"))
	if err != nil {
		answerWith(w, 404, `{"error":"not_found","reason":"missing"}`)
		return
	}
	for _, s := range o.docs {
		for _, a := range s.atts {
			if s.id+"/"+a.Name == path && s.path.Rev() == rev {
				_, _ = w.Write(a.content)
				return
			}
		}
	}
	answerWith(w, 404, `{"error":"not_found","reason":"Document is missing attachment"}`)
}

// library is the documents of a test, and what is wanted of them.
func library() ([]*stored, []endpoint.Wanted) {
	var docs []*stored
	var wanted []endpoint.Wanted
	for i := range 20 {
		s := &stored{id: fmt.Sprintf("döc/%d", i), path: doc.Path{Start: 2, IDs: []string{rev(2, "b").ID, rev(1, "a").ID}}}
		switch i % 5 {
		case 1:
			s.atts = []storedAtt{attachment("a/b.txt", 1, strings.Repeat("abc", 100*i), false), attachment("ü", 2, "", false)}
		case 3:
			s.atts = []storedAtt{attachment("big", 2, strings.Repeat("0123456789abcdef", 6000), i > 10), attachment("small", 2, "s", true)}
		case 4:
			s.atts = []storedAtt{attachment("other", 2, strings.Repeat("otherwise", i), true).otherwise()}
		case 2:
			s.atts = []storedAtt{attachment("z", 2, strings.Repeat("zip", 1000), true), attachment("y", 2, "\r\n--other\r\n--out\r\n\r\n--", false)}
		}
		docs = append(docs, s)
		if i%7 == 0 {
			docs = append(docs, &stored{id: s.id, path: doc.Path{Start: 1, IDs: []string{rev(1, "c").ID}}, atts: s.atts})
		}
		w := endpoint.Wanted{ID: s.id, Revs: []doc.Rev{rev(2, "b"), rev(1, "c")}}
		if i%10 == 1 {
			w.Ancestors = []doc.Rev{rev(1, "a"), rev(1, "f")}
		}
		wanted = append(wanted, w)
	}
	return docs, wanted
}

// expected is what fetchAll has to give.
func expected(t *testing.T, docs []*stored, wanted []endpoint.Wanted) []string {
	t.Helper()
	var out []string
	for _, s := range docs {
		i := slices.IndexFunc(wanted, func(w endpoint.Wanted) bool { return w.ID == s.id })
		if i < 0 {
			continue
		}
		known := wanted[i].Ancestors
		if s.path.Start == 1 {
			known = nil // they are no ancestors of this one
		}
		text := s.json(true, known)
		e, err := doc.ParseEnvelope([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		text = strings.NewReplacer(`,"stub":true,"encoding":"gzip"`, `,"stub":true`).Replace(text)
		for k := range e.Atts {
			if e.Atts[k].Follows {
				text += fmt.Sprintf(" %s=%q", s.atts[k].Name, s.atts[k].content)
			}
		}
		out = append(out, text)
	}
	return out
}

// Servers of all kinds give the same documents.
func TestFetch(t *testing.T) {
	for _, tc := range []struct {
		name string
		old
		options endpoint.FetchOptions
	}{
		{"CouchDB 3.x", old{inline: true}, endpoint.FetchOptions{}},
		{"CouchDB 2.x", old{}, endpoint.FetchOptions{}},
		{"without _bulk_get", old{noBulk: 404}, endpoint.FetchOptions{}},
		{"CouchDB 1.x", old{noBulk: 405, bare: true, chunked: true}, endpoint.FetchOptions{}},
		{"_bulk_get fails", old{noBulk: 500}, endpoint.FetchOptions{}},
		{"one by one", old{}, endpoint.FetchOptions{NoBulkGet: true}},
		{"stubs that nobody asked for", old{stubs: true}, endpoint.FetchOptions{NoBulkGet: true}},
		{"PouchDB Server", old{arrays: true}, endpoint.FetchOptions{}},
		{"PouchDB Server, one by one", old{arrays: true}, endpoint.FetchOptions{NoBulkGet: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			docs, wanted := library()
			tc.docs = docs
			with(t, tc.ServeHTTP, func(t *testing.T, p *peer) {
				t.Helper()
				d := p.open(spec.Address{})
				got, err := fetchAll(t.Context(), d, tc.options, wanted...)
				if err != nil {
					t.Fatal(err)
				}
				want := expected(t, docs, wanted)
				slices.Sort(got)
				slices.Sort(want)
				if !slices.Equal(got, want) {
					t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
				p.requests()
				if _, err := fetchAll(t.Context(), d, tc.options, wanted[0]); err != nil {
					t.Fatal(err)
				}
				asked := slices.ContainsFunc(p.requests(), func(s string) bool { return strings.HasPrefix(s, "POST /db/_bulk_get?") })
				if asked != (!tc.options.NoBulkGet && (tc.noBulk == 0 || tc.noBulk == 500)) {
					t.Errorf("_bulk_get asked again: %v", asked)
				}
			})
		})
	}
}

// Connections that break at random bytes cost nothing but time: each document
// comes once and whole.
func TestFetchCut(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 2))
		docs, wanted := library()
		o := &old{docs: docs, arrays: seed%3 == 1, inline: seed%2 == 1}
		if seed%4 == 1 {
			o.noBulk = 404
		}
		with(t, o.ServeHTTP, func(t *testing.T, p *peer) {
			t.Helper()
			d := p.open(spec.Address{})
			d.client.options.Retries = 1000
			cut := 0
			p.wrap = func(c net.Conn) net.Conn {
				cut++
				return &brittle{c, random.IntN(1000 + 20_000*cut)}
			}
			got, err := fetchAll(t.Context(), d, endpoint.FetchOptions{}, wanted...)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			want := expected(t, docs, wanted)
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("seed %d, got:\n%s\nwant:\n%s", seed, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			if cut < 2 {
				t.Errorf("seed %d: nothing was cut", seed)
			}
		})
	}
}

// An answer is read as it comes: the first document is taken before the server
// has sent the last one.
func TestFetchStreams(t *testing.T) {
	var taken chan string // of the bubble
	s := &stored{id: "x", path: doc.Path{Start: 1, IDs: []string{rev(1, "a").ID}}}
	var wanted []endpoint.Wanted
	for i := range 100 {
		wanted = append(wanted, endpoint.Wanted{ID: fmt.Sprint("doc", i), Revs: []doc.Rev{rev(1, "a")}})
	}
	with(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"results":[`)
		for i, one := range wanted {
			s.id = one.ID
			_, _ = fmt.Fprintf(w, `{"id":%q,"docs":[{"ok":%s}]},`, s.id, s.json(false, nil))
			_ = http.NewResponseController(w).Flush()
			if got := <-taken; got != one.ID {
				t.Errorf("%s is document %d", got, i)
			}
			_, _ = io.WriteString(w, strings.Repeat(" ", 1<<20))
		}
		_, _ = io.WriteString(w, `]}`)
	}, func(t *testing.T, p *peer) {
		t.Helper()
		taken = make(chan string)
		err := p.open(spec.Address{}).Fetch(t.Context(), endpoint.FetchOptions{}, wanted, func(d *endpoint.Doc, _ endpoint.Contents) error {
			taken <- d.ID
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// Lists of revisions that do not fit into an address are split, and nothing is
// asked for twice.
func TestFetchLongLists(t *testing.T) {
	var docs []*stored
	w := endpoint.Wanted{ID: "doc"}
	for i := range 1000 {
		r := doc.Rev{Pos: 1, ID: fmt.Sprintf("%016d", i)}
		docs = append(docs, &stored{id: "doc", path: doc.Path{Start: 1, IDs: []string{r.ID}}})
		w.Revs = append(w.Revs, r)
		w.Ancestors = append(w.Ancestors, doc.Rev{Pos: uint64(i), ID: fmt.Sprintf("%016d", i)})
	}
	o := &old{docs: docs}
	with(t, o.ServeHTTP, func(t *testing.T, p *peer) {
		t.Helper()
		got, err := fetchAll(t.Context(), p.open(spec.Address{}), endpoint.FetchOptions{NoBulkGet: true}, w)
		if err != nil || len(got) != 1000 {
			t.Fatalf("%d documents, %v", len(got), err)
		}
		asked := p.requests()
		if len(asked) > 20 {
			t.Errorf("%d requests", len(asked))
		}
		if query, _ := url.ParseQuery(asked[0]); !strings.HasPrefix(query.Get("atts_since"), `["999-`) {
			t.Errorf("not the newest ancestors: %.100s", query.Get("atts_since"))
		}
	})
}

// With latest a server gives a newer revision than the one that was asked for.
func TestFetchLatest(t *testing.T) {
	s := &stored{id: "doc", path: doc.Path{Start: 3, IDs: []string{rev(3, "c").ID, rev(2, "b").ID, rev(1, "a").ID}}}
	with(t, func(w http.ResponseWriter, _ *http.Request) {
		one := fmt.Sprintf(`{"id":"doc","docs":[{"ok":%s}]}`, s.json(false, nil))
		_, _ = fmt.Fprintf(w, `{"results":[%s,%s]}`, one, one)
	}, func(t *testing.T, p *peer) {
		t.Helper()
		w := endpoint.Wanted{ID: "doc", Revs: []doc.Rev{rev(2, "b"), rev(1, "a")}}
		got, err := fetchAll(t.Context(), p.open(spec.Address{}), endpoint.FetchOptions{}, w)
		if err != nil || len(got) != 1 || got[0] != s.json(false, nil) {
			t.Errorf("%s %v", got, err)
		}
	})
}

// What a server should not send is an error of the server, not of documents.
func TestFetchGarbage(t *testing.T) {
	good := &stored{id: "doc", path: doc.Path{Start: 1, IDs: []string{rev(1, "a").ID}}, atts: []storedAtt{attachment("a", 1, "content", false)}}
	text := good.json(true, nil)
	part := func(json, content string) string {
		return "--o\r\nContent-Type: multipart/related; boundary=i\r\n\r\n--i\r\nContent-Type: application/json\r\n\r\n" + json + "\r\n--i\r\n\r\n" + content + "\r\n--i--\r\n--o--"
	}
	for _, tc := range []struct{ name, kind, body, why string }{
		{"wrong digest", "multipart/mixed; boundary=o", part(text, "cuntent"), "digest"},
		{"too short", "multipart/mixed; boundary=o", part(text, "conten"), "more or fewer than announced"},
		{"too long", "multipart/mixed; boundary=o", part(text, "contents"), "more or fewer than announced"},
		{"no part", "multipart/mixed; boundary=o", "--o\r\nContent-Type: multipart/related; boundary=i\r\n\r\n--i\r\nContent-Type: application/json\r\n\r\n" + text + "\r\n--i--\r\n--o--", "No part follows"},
		{"no end", "multipart/mixed; boundary=o", part(text, "content")[:len(part(text, "content"))-20], "malformed"},
		{"another document", "multipart/mixed; boundary=o", part(strings.Replace(text, `"doc"`, `"dog"`, 1), "content"), "another document"},
		{"a page", "text/html", "<html></html>", "no JSON"},
		{"half an array", "application/json", `[{"ok":` + text, "unexpected EOF"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			with(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", tc.kind)
				_, _ = io.WriteString(w, tc.body)
			}, func(t *testing.T, p *peer) {
				t.Helper()
				d := p.open(spec.Address{})
				_, err := fetchAll(t.Context(), d, endpoint.FetchOptions{NoBulkGet: true}, endpoint.Wanted{ID: "doc", Revs: []doc.Rev{rev(1, "a")}})
				if !endpoint.Retryable(err) || !strings.Contains(fault.Reason(err), tc.why) || !strings.Contains(fault.Reason(err), peerURL) {
					t.Errorf("reason %q: %v", fault.Reason(err), err)
				}
				if got := len(p.requests()); got != 1+d.client.options.Retries {
					t.Errorf("asked %d times", got)
				}
			})
		})
	}
}

// What the taker says ends it.
func TestFetchTaker(t *testing.T) {
	docs, wanted := library()
	with(t, (&old{docs: docs}).ServeHTTP, func(t *testing.T, p *peer) {
		t.Helper()
		mine, n := errors.New("mine"), 0
		err := p.open(spec.Address{}).Fetch(t.Context(), endpoint.FetchOptions{}, wanted, func(d *endpoint.Doc, _ endpoint.Contents) error {
			if n++; d.Follows() {
				return mine
			}
			return nil
		})
		if !errors.Is(err, mine) || n != 6 {
			t.Errorf("%d documents, %v", n, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		err = p.open(spec.Address{}).Fetch(ctx, endpoint.FetchOptions{}, wanted, func(*endpoint.Doc, endpoint.Contents) error {
			cancel()
			return ctx.Err()
		})
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// A database that has gone is told from a document that has.
func TestFetchGone(t *testing.T) {
	for reason, want := range map[string]fault.Kind{"missing": 0, "deleted": 0, "Database does not exist.": fault.NoDatabase, "no_db_file": fault.NoDatabase} {
		with(t, func(w http.ResponseWriter, _ *http.Request) {
			answerWith(w, 404, fmt.Sprintf(`{"error":"not_found","reason":%q}`, reason))
		}, func(t *testing.T, p *peer) {
			t.Helper()
			got, err := fetchAll(t.Context(), p.open(spec.Address{}), endpoint.FetchOptions{}, endpoint.Wanted{ID: "doc", Revs: []doc.Rev{rev(1, "a")}})
			if fault.KindOf(err) != want || len(got) != 0 {
				t.Errorf("%s: %v %v", reason, got, err)
			}
		})
	}
}

// For any bytes that a server sends as documents: nothing breaks, and contents that are read to
// their end are those that were announced.
func FuzzMultipart(f *testing.F) {
	s := &stored{id: "doc", path: doc.Path{Start: 1, IDs: []string{rev(1, "a").ID}}, atts: []storedAtt{attachment("a", 1, "content", false), attachment("z", 1, "zip", true)}}
	var b bytes.Buffer
	(&old{}).related(&b, s, nil)
	f.Add([]byte("--o"+b.String()+"\r\n--o--"), 3)
	f.Add([]byte("--o\r\nContent-Type: application/json\r\n\r\n"+s.json(false, nil)+"\r\n--o\r\n\r\n{\"missing\":\"1-x\"}\r\n--o--"), 1)
	f.Fuzz(func(t *testing.T, text []byte, step int) {
		one := &fetch{db: &Database{client: &client{url: "http://x/"}, maxValue: maxUnlimited}, take: func(d *endpoint.Doc, c endpoint.Contents) error {
			if d.ID != "doc" || len(d.Path.IDs) == 0 {
				t.Errorf("%+v", d)
			}
			if !d.Follows() {
				return nil
			}
			for i := range d.Atts {
				if !d.Atts[i].Follows() {
					continue
				}
				r, err := c.Next(context.Background())
				if err != nil {
					return err
				}
				content, err := io.ReadAll(r)
				if err != nil {
					return err
				}
				if int64(len(content)) != d.Atts[i].StoredLength {
					t.Errorf("%d bytes of %+v", len(content), d.Atts[i])
				}
				if d.Atts[i].Digest != [16]byte{} && md5.Sum(content) != d.Atts[i].Digest {
					t.Errorf("%q does not have digest %s", content, base64.StdEncoding.EncodeToString(d.Atts[i].Digest[:]))
				}
			}
			return nil
		}}
		w := &endpoint.Wanted{ID: "doc", Revs: []doc.Rev{rev(1, "a")}}
		parts, err := docformat.NewParts(&stutter{text, max(1, step%50)}, "multipart/mixed; boundary=o", "multipart/mixed")
		if err != nil {
			t.Fatal(err)
		}
		r := revisions{fetch: one, wanted: w}
		_ = r.parts(t.Context(), parts)
		_ = r.array(t.Context(), &stutter{text, max(1, step%50)})
		_ = one.result(text, map[string]*endpoint.Wanted{"doc": w})
	})
}
