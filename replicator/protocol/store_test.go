package protocol

import (
	"bytes"
	"context"
	"crypto/md5"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"divan/replicator/endpoint"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// store is a database in memory: documents with their revision trees, contents
// of attachments, local documents and a feed of changes. It is both sides of
// a replication.
type store struct {
	name string

	mu       sync.Mutex
	gone     bool // there is no such database
	instance string
	seq      uint64
	docs     map[string]*document
	order    []change // by sequence; a document may stand in it more than once
	local    map[string]localDoc
	moved    chan struct{} // closed with the next change

	allow    func(d *endpoint.Doc) error // validation
	readOnly bool                        // takes no local documents
	maxWrite int                         // bytes of bodies in one write; 0: any
	small    int                         // attachments up to this size come with the document
	limit    int                         // of revisions in a path; 0: none

	checked, fetched, writes int // revisions asked about, given, calls of Write
	committed                int // calls of PutLocal that worked
}

type change struct {
	seq uint64
	id  string
}

type localDoc struct {
	rev  int
	body []byte
}

// document is one document: what revisions hold is kept by revision.
type document struct {
	tree    doc.Tree
	seq     uint64
	content map[doc.Rev]revision
	hidden  map[doc.Rev]bool // not shown to a reader, as by a copy that lags
}

type revision struct {
	deleted bool
	body    []byte
	atts    []file
}

type file struct {
	doc.Attachment
	data []byte
}

func newStore(name string) *store {
	return &store{
		name: name, instance: "1", docs: map[string]*document{}, local: map[string]localDoc{},
		moved: make(chan struct{}), small: 64,
	}
}

// put stores a revision with all it has.
func (s *store) put(id string, path doc.Path, deleted bool, body string, files ...file) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store(id, path, revision{deleted: deleted, body: []byte(body), atts: files})
}

func (s *store) store(id string, path doc.Path, r revision) {
	d := s.docs[id]
	if d == nil {
		d = &document{content: map[doc.Rev]revision{}, hidden: map[doc.Rev]bool{}}
		s.docs[id] = d
	}
	d.content[path.Rev()] = r
	if d.tree.Merge(path, doc.Node{Rev: path.Rev(), Deleted: r.deleted, Stored: true}) == doc.Known {
		return
	}
	if s.limit > 0 {
		d.tree.Stem(s.limit)
	}
	s.seq++
	d.seq = s.seq
	s.order = append(s.order, change{s.seq, id})
	close(s.moved)
	s.moved = make(chan struct{})
}

// edit adds a revision to the winner, or makes the document.
func (s *store) edit(id, body string, files ...file) doc.Rev {
	return s.extend(id, doc.Rev{}, false, body, files...)
}

func (s *store) remove(id string) { s.extend(id, doc.Rev{}, true, "{}") }

// extend adds a revision to the given one, the winner if none is given.
func (s *store) extend(id string, parent doc.Rev, deleted bool, body string, files ...file) doc.Rev {
	s.mu.Lock()
	defer s.mu.Unlock()
	var path doc.Path
	if d := s.docs[id]; d != nil {
		if parent.IsZero() {
			winner, _ := d.tree.Winner()
			parent = winner.Rev
		}
		path = d.tree.Path(parent, 0)
	}
	for i := range files {
		if files[i].RevPos == 0 {
			files[i].RevPos = path.Start + 1
		}
	}
	sum := md5.Sum(fmt.Append(nil, s.name, path, deleted, body, len(files)))
	path = doc.Path{Start: path.Start + 1, IDs: slices.Concat([]string{string(sum[:])}, path.IDs)}
	s.store(id, path, revision{deleted: deleted, body: []byte(body), atts: files})
	return path.Rev()
}

func attachment(name string, data []byte) file {
	return file{doc.Attachment{
		Name: name, ContentType: "text/plain", Digest: md5.Sum(data),
		Length: int64(len(data)), StoredLength: int64(len(data)),
	}, data}
}

// leaves prints every leaf of every document with what it holds.
func (s *store) leaves() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var lines []string
	for id, d := range s.docs {
		for _, leaf := range d.tree.Leaves() {
			r := d.content[leaf.Rev]
			var atts []string
			for _, f := range r.atts {
				atts = append(atts, fmt.Sprintf("%s %x %x", f.Name, f.Digest, md5.Sum(f.data)))
			}
			slices.Sort(atts)
			lines = append(lines, fmt.Sprintf("%s %s %v %v %s %v", id, leaf.Rev, leaf.Deleted, d.tree.Path(leaf.Rev, 0), r.body, atts))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func (s *store) at(seq uint64) endpoint.Seq {
	return endpoint.Seq(fmt.Sprintf(`"%d-%s"`, seq, s.name))
}

func (s *store) number(seq endpoint.Seq) uint64 { return leading(seq) }

func (s *store) open() error {
	if s.gone {
		return fault.New(fault.NoDatabase, "Database does not exist.")
	}
	return nil
}

func (s *store) Info(context.Context) (endpoint.Info, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return endpoint.Info{Name: s.name, InstanceStart: s.instance, UpdateSeq: s.at(s.seq)}, s.open()
}

func (s *store) Create(context.Context, endpoint.CreateOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = false
	return nil
}

func (s *store) Local(_ context.Context, id string) ([]byte, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok := s.local[id]
	if !ok {
		return nil, "", fault.New(fault.NotFound, "missing")
	}
	return l.body, "0-" + strconv.Itoa(l.rev), nil
}

func (s *store) PutLocal(_ context.Context, id, rev string, body []byte) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok := s.local[id]
	switch {
	case s.readOnly:
		return "", fault.New(fault.Forbidden, "You are not allowed to write.")
	case ok != (rev != "") || ok && rev != "0-"+strconv.Itoa(l.rev):
		return "", fault.New(fault.Conflict, "Document update conflict.")
	}
	s.committed++
	s.local[id] = localDoc{l.rev + 1, bytes.Clone(body)}
	return "0-" + strconv.Itoa(l.rev+1), nil
}

func (s *store) Commit(context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.instance, s.open()
}

func (s *store) Close() error { return nil }

func (s *store) Design(context.Context, string) ([]byte, error) {
	return nil, fault.New(fault.NotFound, "missing")
}

func (s *store) Pending(_ context.Context, since endpoint.Seq) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var n int64
	for _, d := range s.docs {
		if d.seq > s.number(since) {
			n++
		}
	}
	return n, nil
}

// feed is a feed of changes.
type feed struct {
	s *store
	q endpoint.ChangesQuery
	n uint64
}

func (s *store) Changes(_ context.Context, q endpoint.ChangesQuery) (endpoint.Feed, error) {
	return &feed{s, q, s.number(q.Since)}, nil
}

func (f *feed) passes(id string) bool {
	return !f.q.Filter.HasIDs || slices.Contains(f.q.Filter.DocIDs, id)
}

func (f *feed) Next(ctx context.Context, rows []endpoint.Change) (int, error) {
	for {
		f.s.mu.Lock()
		moved := f.s.moved
		n := f.take(rows)
		f.s.mu.Unlock()
		switch {
		case n > 0:
			return n, ctx.Err()
		case !f.q.Continuous:
			return 0, io.EOF
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

func (f *feed) take(rows []endpoint.Change) int {
	from, _ := slices.BinarySearchFunc(f.s.order, f.n+1, func(c change, n uint64) int { return int(c.seq) - int(n) })
	n := 0
	for _, c := range f.s.order[from:] {
		if n == len(rows) {
			break
		}
		f.n = c.seq
		d := f.s.docs[c.id]
		if d.seq != c.seq || !f.passes(c.id) {
			continue
		}
		row := endpoint.Change{ID: c.id}
		for _, leaf := range d.tree.Leaves() {
			row.Revs = append(row.Revs, leaf.Rev)
			if f.q.WinnerOnly {
				break
			}
		}
		rows[n] = row
		n++
	}
	return n
}

func (f *feed) Last() endpoint.Seq { return f.s.at(f.n) }
func (f *feed) Close()             {}

func (s *store) Missing(_ context.Context, ids []shard.IDRevs) ([]shard.IDMissing, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []shard.IDMissing
	for _, id := range ids {
		s.checked += len(id.Revs)
		m := shard.IDMissing{ID: id.ID, Missing: id.Revs}
		if d := s.docs[id.ID]; d != nil {
			m.Missing, m.PossibleAncestors = d.tree.Missing(id.Revs)
		}
		if len(m.Missing) > 0 {
			out = append(out, m)
		}
	}
	slices.Reverse(out)
	return out, nil
}

// Fetch gives revisions, or the leaves that have taken their place.
func (s *store) Fetch(ctx context.Context, o endpoint.FetchOptions, wanted []endpoint.Wanted, take func(*endpoint.Doc, endpoint.Contents) error) error {
	for _, w := range wanted {
		for _, rev := range w.Revs {
			for _, v := range s.latest(w, rev, o.WholeAttachments) {
				if err := take(v.doc, &v.contents); err != nil {
					return err
				}
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
	}
	return nil
}

type version struct {
	doc      *endpoint.Doc
	contents contents
}

func (s *store) latest(w endpoint.Wanted, rev doc.Rev, whole bool) (out []version) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.docs[w.ID]
	if d == nil {
		return nil
	}
	for _, leaf := range d.tree.LeavesFrom(rev) {
		if d.hidden[leaf.Rev] {
			continue
		}
		s.fetched++
		r := d.content[leaf.Rev]
		v := version{doc: &endpoint.Doc{ID: w.ID, Path: d.tree.Path(leaf.Rev, 0), Deleted: r.deleted, Body: r.body}}
		var known uint64 // the newest revision on the way here that the target has
		for _, a := range w.Ancestors {
			if holds(&v.doc.Path, a) {
				known = max(known, a.Pos)
			}
		}
		for _, f := range r.atts {
			a := endpoint.Attachment{Attachment: f.Attachment}
			switch {
			case f.RevPos <= known && !whole:
				a.Stub = true
			case len(f.data) <= s.small:
				a.Data = f.data
			default:
				v.contents = append(v.contents, f.data)
			}
			v.doc.Atts = append(v.doc.Atts, a)
		}
		out = append(out, v)
	}
	return out
}

// contents is contents of attachments in memory.
type contents [][]byte

func (c *contents) Next(context.Context) (io.ReadCloser, error) {
	if len(*c) == 0 {
		return nil, io.EOF
	}
	next := (*c)[0]
	*c = (*c)[1:]
	return io.NopCloser(bytes.NewReader(next)), nil
}

func (s *store) Write(ctx context.Context, docs []*endpoint.Doc) ([]endpoint.Refused, error) {
	s.mu.Lock()
	s.writes++
	size := 0
	for _, d := range docs {
		size += len(d.Body)
	}
	tooLarge := s.maxWrite > 0 && size > s.maxWrite
	s.mu.Unlock()
	if tooLarge {
		return nil, fault.New(fault.RequestTooLarge, "the request entity is too large")
	}
	var refused []endpoint.Refused
	for _, d := range docs {
		if err := s.WriteWith(ctx, d, nil); err != nil {
			refused = append(refused, endpoint.Refused{ID: d.ID, Rev: d.Path.Rev(), Err: err})
		}
	}
	return refused, nil
}

func (s *store) WriteWith(ctx context.Context, d *endpoint.Doc, c endpoint.Contents) error {
	r := revision{deleted: d.Deleted, body: d.Body}
	for i := range d.Atts {
		a := &d.Atts[i]
		f := file{a.Attachment, a.Data}
		if a.Follows() {
			body, err := c.Next(ctx)
			if err != nil {
				return err
			}
			if f.data, err = io.ReadAll(body); err != nil {
				return err
			}
		}
		r.atts = append(r.atts, f)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.allow != nil {
		if err := s.allow(d); err != nil {
			return err
		}
	}
	for i := range d.Atts {
		if d.Atts[i].Stub && !s.resolve(d, &r.atts[i]) {
			return fault.New(fault.MissingStub, "Invalid attachment stub")
		}
	}
	s.store(d.ID, d.Path, r)
	return nil
}

// resolve finds the content of a stub in an ancestor.
func (s *store) resolve(d *endpoint.Doc, f *file) bool {
	known := s.docs[d.ID]
	if known == nil {
		return false
	}
	for i, id := range d.Path.IDs {
		r, ok := known.content[doc.Rev{Pos: d.Path.Start - uint64(i), ID: id}]
		if !ok {
			continue
		}
		for _, old := range r.atts {
			if old.Name == f.Name && old.Digest == f.Digest {
				f.data = old.data
				return true
			}
		}
	}
	return false
}
