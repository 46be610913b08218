package guard

import (
	"context"
	"strings"

	"divan/cluster/access"
	"divan/httpapi/auth"
	"divan/replicator/spec"
	"divan/shard"
	"divan/shard/fairqueue"
	"divan/shard/ring"
	"divan/storage/doc"
	"divan/storage/fault"
)

// CheckSize refuses a body that is too large; the refusal names id.
func (r Rights) CheckSize(id string, body []byte) error {
	if limit := r.Config.CouchDB.MaxDocumentSize; int64(len(body)) > limit { // of the body alone, as in CouchDB
		return fault.New(fault.DocumentTooLarge, id)
	}
	return nil
}

// CheckID refuses ids that no document of this database may have.
func (r Rights) CheckID(id string) error {
	if err := doc.ValidateID(id); err != nil {
		return err
	}
	if limit := r.Config.CouchDB.MaxDocumentIDLength; int64(len(id)) > limit {
		return fault.New(fault.IllegalDocID, "Document id is too long")
	}
	if err := r.CheckPartition(id); err != nil || !r.inPartition(id) {
		return err
	}
	partition, rest, _ := strings.Cut(id, ":")
	switch {
	case partition == "":
		return fault.New(fault.IllegalPartition, "Partition must not be empty")
	case rest == "":
		return fault.New(fault.IllegalDocID, "Document id must not be empty")
	}
	return nil
}

// CheckPartition refuses an id without a partition where it needs one, for
// reading too.
func (r Rights) CheckPartition(id string) error {
	if r.inPartition(id) && !strings.Contains(id, ":") {
		return fault.New(fault.IllegalDocID, "Doc id must be of form partition:id")
	}
	return nil
}

// inPartition reports whether documents of that name belong to partitions.
func (r Rights) inPartition(id string) bool {
	return r.DB.Partitioned && !doc.IsLocal(id) && !strings.HasPrefix(id, doc.DesignPrefix)
}

// Edit is CheckID, CheckSize and Prepare.
func (r Rights) Edit(ctx context.Context, e *shard.Edit) error {
	if err := r.CheckID(e.ID); err != nil {
		return err
	}
	if err := r.CheckSize(e.ID, e.Body); err != nil {
		return err
	}
	return r.Prepare(ctx, e)
}

// Prepare refuses an edit that this account may not make, or that would store
// a malformed design document, and turns passwords into hashes. It is called
// before content of attachments is taken.
func (r Rights) Prepare(ctx context.Context, edit *shard.Edit) error {
	if doc.IsLocal(edit.ID) {
		return r.May(access.Contents) // in every kind of write
	}
	if strings.HasPrefix(edit.ID, doc.DesignPrefix) {
		if err := r.WriteDesign(); err != nil {
			return err
		}
		instance := ring.CopyTail(r.DB.CopyName(ring.Range{}))
		turns := fairqueue.With(ctx, fairqueue.Caller{Account: r.User.Name})
		compiles := func(source string) error { return r.Guard.Scripts.CheckFunction(turns, instance, source) }
		if err := CheckDesignDoc(compiles, edit.Body, r.DB.Partitioned); err != nil {
			return err
		}
	}
	if spec.IsDatabase(r.DB.Name) {
		return r.prepareReplication(edit)
	}
	if !auth.IsUsersDatabase(r.Config, r.DB.Name) {
		return nil
	}
	body, err := r.Guard.Auth.PrepareUser(ctx, auth.UserWrite{
		ID: edit.ID, Deleted: edit.Deleted, Body: edit.Body, User: r.User, Peer: r.Peer, Admin: r.IsAdmin(), Replicated: len(edit.Path.IDs) > 0,
	})
	if err != nil {
		return err
	}
	edit.Body = body
	return nil
}

// prepareReplication is Prepare for a document that describes a replication.
func (r Rights) prepareReplication(edit *shard.Edit) error {
	if strings.HasPrefix(edit.ID, doc.DesignPrefix) {
		return nil
	}
	if len(edit.Path.IDs) > 0 {
		// The rule of owners compares with the revision before, and here the
		// client says which that is.
		if !r.IsAdmin() {
			return fault.New(fault.Forbidden, "Only administrators can write documents of replications with `new_edits: false`.")
		}
		return nil
	}
	w := auth.ReplicationWrite{Deleted: edit.Deleted, Body: edit.Body, User: r.User, Admin: r.IsAdmin()}
	body, err := w.Prepare()
	if err == nil {
		edit.Body = body
	}
	return err
}

// Written has the next request of a user whose document was written read it again; a
// document of another kind or database is no matter. It is called before the write is
// answered, so that a client that has the answer can log in with the new document, and
// after an error too: it does not say that nothing was written.
func (r Rights) Written(id string) {
	if !auth.IsUsersDatabase(r.Config, r.DB.Name) {
		return
	}
	if name, ok := auth.UserName(id); ok {
		r.Guard.Auth.Invalidate(name)
	}
}

// Read refuses to look for a document that cannot be, and for one that this
// account may not know about, whether it exists or not.
func (r Rights) Read(id string) error {
	if err := r.CheckPartition(id); err != nil {
		return err
	}
	if doc.IsLocal(id) {
		return r.May(access.Contents)
	}
	if !auth.IsUsersDatabase(r.Config, r.DB.Name) {
		return nil
	}
	return auth.UserRead{ID: id, User: r.User, Admin: r.IsAdmin()}.MayRead()
}

// Screen leaves of a document of the authentication database, or of a replicator
// database, what this account may see; fault.NotFound when that is nothing.
func (r Rights) Screen(d *shard.Doc) error {
	if spec.IsDatabase(r.DB.Name) {
		if doc.IsLocal(d.ID) {
			return r.May(access.Contents)
		}
		return auth.ScreenReplication(d, r.User, r.IsAdmin())
	}
	if !auth.IsUsersDatabase(r.Config, r.DB.Name) {
		return nil
	}
	read := auth.UserRead{
		ID: d.ID, User: r.User, Admin: r.IsAdmin(), Public: r.Config.ChttpdAuth.PublicFields,
	}
	body, err := read.Visible(d.Body)
	if err != nil {
		return err
	}
	d.Body = body
	if !read.Whole() {
		d.Atts = nil
	}
	return nil
}
