package local

import (
	"context"

	"divan/cluster"
	"divan/cluster/access"
	"divan/replicator/endpoint"
	"divan/shard"
	"divan/storage/fault"
)

// Create implements endpoint.Target.
func (d *Database) Create(ctx context.Context, o endpoint.CreateOptions) error {
	u, err := d.account(ctx)
	if err != nil {
		return err
	}
	wish, err := d.Access.Create(u, d.name, o.Query)
	if err != nil {
		return err
	}
	if err := d.Coordinator.CreateDB(ctx, d.name, wish); !fault.Is(err, fault.Exists) {
		return err
	}
	return nil
}

// Missing implements endpoint.Target.
func (d *Database) Missing(ctx context.Context, ids []shard.IDRevs) ([]shard.IDMissing, error) {
	db, _, err := d.open(ctx, access.Contents)
	if err != nil {
		return nil, err
	}
	answers, err := db.Missing(ctx, ids)
	if err != nil {
		return nil, err
	}
	left := answers[:0]
	for _, a := range answers {
		if len(a.Missing) > 0 {
			left = append(left, a)
		}
	}
	return left, nil
}

// Write implements endpoint.Target.
func (d *Database) Write(ctx context.Context, docs []*endpoint.Doc) ([]endpoint.Refused, error) {
	w, err := d.writing(ctx)
	if err != nil {
		return nil, err
	}
	edits, of := make([]shard.Edit, 0, len(docs)), make([]*endpoint.Doc, 0, len(docs))
	for _, one := range docs {
		e, err := w.edit(ctx, one, nil)
		if err != nil && !cluster.Refusal(err) {
			w.discard(ctx, edits)
			return nil, err
		}
		if err != nil {
			w.refuse(one, err)
			continue
		}
		edits, of = append(edits, e), append(of, one)
	}
	if err := w.update(ctx, edits, of); err != nil {
		return nil, err
	}
	return w.refused, nil
}

// WriteWith implements endpoint.Target.
func (d *Database) WriteWith(ctx context.Context, one *endpoint.Doc, contents endpoint.Contents) error {
	w, err := d.writing(ctx)
	if err != nil {
		// It is no refusal of this document, which would be passed over.
		return fault.Wrap(fault.Unavailable, "write to "+d.name+": "+fault.Reason(err), err)
	}
	e, err := w.edit(ctx, one, contents)
	if err != nil {
		return err
	}
	if err := w.update(ctx, []shard.Edit{e}, []*endpoint.Doc{one}); err != nil {
		return err
	}
	if len(w.refused) > 0 {
		return w.refused[0].Err
	}
	return nil
}

// writing is one Write.
type writing struct {
	db      *cluster.DB
	rights  userRights
	refused []endpoint.Refused
}

func (d *Database) writing(ctx context.Context) (*writing, error) {
	db, rights, err := d.open(ctx, access.Documents)
	if err != nil {
		return nil, err
	}
	return &writing{db: db, rights: rights}, nil
}

func (w *writing) refuse(d *endpoint.Doc, err error) {
	w.refused = append(w.refused, endpoint.Refused{ID: d.ID, Rev: d.Path.Rev(), Err: err})
}

// edit makes the edit of a revision. The content of its attachments is stored
// then, if it does not travel with the edit.
func (w *writing) edit(ctx context.Context, d *endpoint.Doc, contents endpoint.Contents) (shard.Edit, error) {
	e := shard.Edit{ID: d.ID, Path: d.Path, Deleted: d.Deleted, Body: d.Body}
	if err := w.rights.Edit(ctx, &e); err != nil {
		return e, err
	}
	if len(d.Atts) == 0 {
		return e, nil
	}
	var err error
	e.Atts, err = w.attachments(ctx, d, contents)
	return e, err
}

// update writes edits and notes what is refused. The error says that it is not
// known of any.
func (w *writing) update(ctx context.Context, edits []shard.Edit, of []*endpoint.Doc) error {
	if len(edits) == 0 {
		return nil
	}
	results, err := w.db.Update(ctx, cluster.UpdateOptions{User: w.rights.user}, edits)
	for i := range edits {
		w.rights.Written(edits[i].ID)
	}
	if fault.Is(err, fault.MissingStub) {
		return w.apart(ctx, edits, of, err)
	}
	if err != nil {
		w.settle(ctx, edits, err)
		return err
	}
	var failure error
	for i := range results {
		err := results[i].Err
		if err == nil && results[i].Accepted {
			// It may be gone tomorrow, and no checkpoint may cover it.
			failure = fault.New(fault.Unavailable, "fewer copies than have to took a document")
			continue
		}
		switch {
		case err == nil:
			continue
		case cluster.Refusal(err):
			w.refuse(of[i], err)
		default:
			failure = err
		}
		w.settle(ctx, edits[i:i+1], err)
	}
	return failure
}

// apart writes edits of which one has a stub without its attachment: those with
// stubs one by one, so that only it is refused. Others of them may be written
// already; to write them again changes nothing.
func (w *writing) apart(ctx context.Context, edits []shard.Edit, of []*endpoint.Doc, refusal error) error {
	if len(edits) == 1 {
		w.refuse(of[0], refusal)
		w.settle(ctx, edits, refusal)
		return nil
	}
	var rest []shard.Edit
	var ofRest []*endpoint.Doc
	for i := range edits {
		if !hasStub(&edits[i]) {
			rest, ofRest = append(rest, edits[i]), append(ofRest, of[i])
			continue
		}
		if err := w.update(ctx, edits[i:i+1], of[i:i+1]); err != nil {
			return err
		}
	}
	return w.update(ctx, rest, ofRest)
}

func hasStub(e *shard.Edit) bool {
	for i := range e.Atts {
		if e.Atts[i].Stub {
			return true
		}
	}
	return false
}
