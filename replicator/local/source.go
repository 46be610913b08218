package local

import (
	"context"
	"io"
	"slices"

	"divan/cluster"
	"divan/cluster/access"
	"divan/cluster/docformat"
	"divan/cluster/sequence"
	"divan/replicator/endpoint"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// Changes implements endpoint.Source.
func (d *Database) Changes(ctx context.Context, q endpoint.ChangesQuery) (endpoint.Feed, error) {
	db, rights, err := d.open(ctx, access.Changes)
	if err != nil {
		return nil, err
	}
	query := cluster.ChangesQuery{AllLeaves: !q.WinnerOnly, Limit: cluster.NoLimit}
	if query.Since, err = sinceOf(q.Since); err != nil {
		return nil, err
	}
	if query.Filter, err = d.Access.Filter(ctx, db, rights.user, q.Filter); err != nil {
		return nil, err
	}
	feed, err := db.Changes(ctx, query)
	if err != nil {
		return nil, err
	}
	return &changesFeed{d: d, from: feed, waits: q.Continuous, last: q.Since}, nil
}

func sinceOf(s endpoint.Seq) (sequence.Seq, error) {
	if s == "" {
		return sequence.Seq{}, nil
	}
	return sequence.ParseSince(string(s))
}

// changesFeed implements endpoint.Feed.
type changesFeed struct {
	d     *Database
	from  *cluster.Feed
	waits bool
	last  endpoint.Seq
}

// Next implements endpoint.Feed. Only the last row has its position.
func (f *changesFeed) Next(ctx context.Context, rows []endpoint.Change) (int, error) {
	for {
		n := f.fill(rows)
		if n > 0 {
			f.last = seqOf(f.from.LastSeq())
			rows[n-1].Seq = f.last
			return n, nil
		}
		if err := f.from.Err(); err != nil {
			return 0, err
		}
		f.last = seqOf(f.from.LastSeq())
		if !f.waits {
			return 0, io.EOF
		}
		if err := f.from.Wait(ctx); err != nil {
			return 0, err
		}
		if _, _, err := f.d.open(ctx, access.Changes); err != nil {
			return 0, err // what has come may not be for this account any more
		}
	}
}

// fill takes the rows that are there.
func (f *changesFeed) fill(rows []endpoint.Change) int {
	n := 0
	var leaves []doc.Rev // of all rows, in one piece
	for n < len(rows) && f.from.Next() {
		row := f.from.Row()
		if cap(leaves)-len(leaves) < len(row.Leaves) {
			leaves = make([]doc.Rev, 0, max(len(rows)-n, len(row.Leaves)))
		}
		first := len(leaves)
		leaves = append(leaves, row.Leaves...)
		rows[n] = endpoint.Change{ID: row.ID, Revs: leaves[first:len(leaves):len(leaves)]}
		n++
	}
	return n
}

// Last implements endpoint.Feed.
func (f *changesFeed) Last() endpoint.Seq { return f.last }

// Close implements endpoint.Feed.
func (f *changesFeed) Close() { f.from.Close() }

// Design implements endpoint.Source.
func (d *Database) Design(ctx context.Context, id string) ([]byte, error) {
	db, rights, err := d.open(ctx, access.Documents)
	if err != nil {
		return nil, err
	}
	if err := rights.Read(id); err != nil {
		return nil, err
	}
	found, err := db.Open(ctx, cluster.OpenOptions{ID: id})
	if err != nil {
		return nil, err
	}
	if err := rights.Screen(found); err != nil {
		return nil, err
	}
	return docformat.Style{}.Append(nil, found), nil
}

// Pending implements endpoint.Source.
func (d *Database) Pending(ctx context.Context, since endpoint.Seq) (int64, error) {
	db, _, err := d.open(ctx, access.Changes)
	if err != nil {
		return 0, err
	}
	from, err := sinceOf(since)
	if err != nil {
		return 0, err
	}
	feed, err := db.Changes(ctx, cluster.ChangesQuery{Since: from, Limit: cluster.NoLimit})
	if err != nil {
		return 0, err
	}
	defer feed.Close()
	n := feed.Pending()
	return int64(n), feed.Err()
}

const (
	// fetchMost is how many documents are read together at most,
	fetchMost = 512
	// fetchBytes how much of their bodies, about.
	fetchBytes = 16 << 20
)

// Fetch implements endpoint.Source.
func (d *Database) Fetch(ctx context.Context, o endpoint.FetchOptions, wanted []endpoint.Wanted, take func(*endpoint.Doc, endpoint.Contents) error) error {
	db, rights, err := d.open(ctx, access.Documents)
	if err != nil {
		return err
	}
	f := fetching{db: db, rights: rights, o: o, take: take}
	for most := fetchMost; len(wanted) > 0; {
		n := min(most, len(wanted))
		again, err := f.read(ctx, wanted[:n])
		if err != nil {
			return err
		}
		most = min(2*most, fetchMost)
		if wanted = wanted[n:]; len(again) > 0 {
			most = max(n-len(again), 1)
			wanted = append(again, wanted...)
		}
	}
	return nil
}

// fetching is one Fetch.
type fetching struct {
	db     *cluster.DB
	rights Rights
	o      endpoint.FetchOptions
	take   func(*endpoint.Doc, endpoint.Contents) error
}

// read reads some documents together and gives them out. It returns those that
// were too much.
func (f *fetching) read(ctx context.Context, wanted []endpoint.Wanted) (again []endpoint.Wanted, err error) {
	list, of := make([]cluster.OpenRevsOptions, 0, len(wanted)), make([]*endpoint.Wanted, 0, len(wanted))
	for i := range wanted {
		w := &wanted[i]
		if f.rights.Read(w.ID) != nil {
			continue // as one that is not there: it may not be known about
		}
		// Any copy will do: where it does not have a revision, the others are asked.
		list, of = append(list, cluster.OpenRevsOptions{
			ID: w.ID, Revs: w.Revs, Latest: true, WithPath: true, R: 1, MaxBytes: fetchBytes,
		}), append(of, w)
	}
	got, errs := f.db.OpenRevsMany(ctx, list)
	if len(list) > 0 && !slices.ContainsFunc(errs, func(err error) bool { return !fault.Is(err, fault.RequestTooLarge) }) {
		if err := f.readAlone(ctx, list[0], of[0]); err != nil { // it has more than fits
			return nil, err
		}
		of, got, errs = of[1:], got[1:], errs[1:]
	}
	for i, w := range of {
		if fault.Is(errs[i], fault.RequestTooLarge) {
			again = append(again, *w)
			continue
		}
		if errs[i] != nil {
			return nil, errs[i]
		}
		for _, r := range got[i] {
			if r.Doc == nil {
				continue
			}
			if err := f.give(ctx, w, r.Doc); err != nil {
				return nil, err
			}
		}
		got[i] = nil // one at a time is held
	}
	return again, nil
}

// readAlone reads a document and gives it out, a revision at a time: those that were named, and
// not the leaves below them, of which there may be many and which come with later changes.
func (f *fetching) readAlone(ctx context.Context, o cluster.OpenRevsOptions, w *endpoint.Wanted) error {
	given := make(map[doc.Rev]bool)
	o.MaxBytes, o.Latest = 0, false
	for _, rev := range w.Revs {
		o.Revs = []doc.Rev{rev}
		got, err := f.db.OpenRevs(ctx, o)
		if err != nil {
			return err
		}
		for _, r := range got {
			if r.Doc == nil || given[r.Rev] {
				continue
			}
			given[r.Rev] = true
			if err := f.give(ctx, w, r.Doc); err != nil {
				return err
			}
		}
	}
	return nil
}

// give gives out one revision.
func (f *fetching) give(ctx context.Context, w *endpoint.Wanted, found *shard.Doc) error {
	if err := f.rights.Screen(found); err != nil {
		if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Forbidden) {
			return nil
		}
		return err
	}
	d := &endpoint.Doc{ID: found.ID, Path: found.Revisions, Deleted: found.Deleted, Body: found.Body}
	if len(found.Atts) == 0 {
		return f.take(d, nil)
	}
	atts, err := f.attachments(ctx, w, found)
	if err != nil {
		return err
	}
	d.Atts = atts
	contents := &contents{db: f.db, doc: d}
	defer contents.close()
	return f.take(d, contents)
}

// attachments returns the attachments of a revision: stubs of those that the
// target has, the content of those that are small and not too many.
func (f *fetching) attachments(ctx context.Context, w *endpoint.Wanted, found *shard.Doc) ([]endpoint.Attachment, error) {
	style := docformat.Style{Attachments: true, Since: w.Ancestors}
	if f.o.WholeAttachments {
		style.Since = nil
	}
	fresh := style.WithContent(found)
	atts := make([]endpoint.Attachment, len(found.Atts))
	carried := int64(0)
	for i := range found.Atts {
		a := &atts[i]
		a.Attachment = found.Atts[i]
		a.Stub = !slices.ContainsFunc(fresh, func(b doc.Attachment) bool { return a.Name == b.Name })
		if a.Stub || a.StoredLength > smallContent || carried+a.StoredLength > mostCarried {
			continue
		}
		carried += a.StoredLength
		var err error
		if a.Data, err = readContent(ctx, f.db, found.ID, &a.Attachment); err != nil {
			return nil, err
		}
	}
	return atts, nil
}
