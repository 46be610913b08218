package replicator

import (
	"context"
	"crypto/md5"
	"errors"
	"strings"
	"time"

	"go.uber.org/zap"

	"divan/cluster"
	"divan/replicator/ownership"
	"divan/replicator/protocol"
	"divan/replicator/spec"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
	"divan/storage/pause"
)

// docKey names a document of a replicator database.
type docKey struct{ db, id string }

// document is a document of a replicator database whose replication this node
// runs. One whose replication has ended is not kept.
type document struct {
	key   docKey
	slot  int
	term  uint64
	text  [md5.Size]byte // of what the client wrote
	spec  *spec.Spec
	began time.Time // when it was seen

	// Guarded by Replicator.mu.
	job      *job      // nil: its id is not known yet
	attempts int       // to find its id that failed in a row
	reason   string    // of the last one
	updated  time.Time // of the last one
	due      time.Time // when its filter function is to be read, or failed to be written
	failed   string    // why it can never run; empty: it can
	resolving,
	told bool // that it is triggered
}

// filtered reports whether a function selects what is copied.
func (d *document) filtered() bool { return strings.Contains(d.spec.Filter.Function, "/") }

// serverMember reports whether a member of a document is written by the server.
func serverMember(name string) bool { return strings.HasPrefix(name, "_replication_") }

// clientText is a hash of the members that the client wrote.
func clientText(body []byte) (sum [md5.Size]byte) {
	h := md5.New()
	_ = doc.EachMember(body, func(name string, value []byte) error { // what is stored is well-formed
		if !serverMember(name) {
			_, _ = h.Write(doc.AppendString(nil, name)) // never fails
			_, _ = h.Write(value)
		}
		return nil
	})
	h.Sum(sum[:0])
	return sum
}

// seen takes notice of a document as it is now; d is nil for one that is
// deleted.
func (r *Replicator) seen(ctx context.Context, key docKey, d *shard.Doc) {
	slot := ownership.Slot(key.db, key.id)
	term, mine := r.mine(ctx, slot)
	if d == nil || !mine {
		r.forget(key)
		return
	}
	state, _ := doc.Unquote(doc.Lookup(d.Body, "_replication_state"))
	if state == Completed || state == Failed {
		r.forget(key)
		return
	}
	next := &document{key: key, slot: slot, term: term, text: clientText(d.Body), began: time.Now()}
	r.mu.Lock()
	old := r.mu.docs[key]
	r.mu.Unlock()
	if old != nil && old.text == next.text && old.term == term {
		return
	}
	r.forget(key)
	var err error
	if next.spec, err = spec.ParseDocument(d.Body, key.db, key.id, r.defaults(shard.User{Anonymous: true})); err != nil {
		next.spec = &spec.Spec{}
	}
	next.resolving = !next.filtered()
	r.mu.Lock()
	r.mu.docs[key] = next
	r.mu.Unlock()
	if err != nil {
		r.fail(ctx, next, fault.Reason(err))
		return
	}
	if next.filtered() {
		r.poke()
		return
	}
	r.start(ctx, next, next.spec.ID(r.uuid(), ""))
}

// mine tells whether this node owns a slot. While it is named as the owner, but has
// not heard of the group for too long, it waits.
func (r *Replicator) mine(ctx context.Context, slot int) (term uint64, mine bool) {
	for {
		term, mine = r.o.Owners.Mine(slot)
		owner, _ := r.o.Owners.Owner(slot)
		if mine || owner.Node != r.o.Meta.Self() || pause.For(ctx, time.Second) != nil {
			return term, mine
		}
	}
}

// fail writes down that a replication can never run, now or when that is possible.
func (r *Replicator) fail(ctx context.Context, d *document, reason string) {
	r.mu.Lock()
	d.failed, d.resolving = reason, true
	r.mu.Unlock()
	written := r.writeState(ctx, d, docState{name: Failed, reason: reason})
	r.mu.Lock()
	defer r.mu.Unlock()
	d.resolving = false
	if r.mu.docs[d.key] != d {
		return // it was edited or deleted meanwhile
	}
	if written {
		delete(r.mu.docs, d.key)
		return
	}
	d.failedAttempt(reason, time.Now())
	r.poke()
}

// forget stops the replication of a document.
func (r *Replicator) forget(key docKey) {
	r.mu.Lock()
	var j *job
	if d := r.mu.docs[key]; d != nil {
		j = d.job
		delete(r.mu.docs, key)
	}
	r.mu.Unlock()
	if j != nil {
		r.stop(j, ownership.ErrLost)
	}
}

// start gives the replication of a document to the scheduler.
func (r *Replicator) start(ctx context.Context, d *document, id spec.ID) {
	j := r.newJob(d.spec, id, d.slot, d.term, d)
	r.mu.Lock()
	d.resolving = false
	if r.mu.docs[d.key] != d { // it was edited or deleted meanwhile
		r.mu.Unlock()
		return
	}
	there := jobOf(r.runner.Add(&j.Job))
	if there == nil {
		d.job, d.attempts, d.reason = j, 0, ""
	} else if there.doc == nil {
		d.failedAttempt("The same replication runs for a request.", time.Now())
	}
	r.mu.Unlock()
	if there != nil && there.doc == nil {
		r.poke() // it is looked at again when it is due
	}
	if there != nil && there.doc != nil {
		r.fail(ctx, d, duplicate(id, d.key, there.doc.key))
	}
}

// duplicate says why the second of two documents with one replication fails.
func duplicate(id spec.ID, second, first docKey) string {
	return "Replication `" + id.String() + "` specified by document `" + second.id + "` already started, triggered by document `" +
		first.id + "` from db `" + first.db + "`"
}

// completed writes down that the replication of a document is done. It tries
// until that worked, the document was changed, or is another node's.
func (r *Replicator) completed(ctx context.Context, j *job) {
	d := j.doc
	stats, _, _ := j.figures()
	state := docState{name: Completed, stats: &stats, began: j.began}
	for wait := time.Second; ctx.Err() == nil && r.has(d); wait = min(2*wait, time.Minute) {
		if r.writeState(ctx, d, state) || pause.For(ctx, wait) != nil {
			break
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.docs[d.key] == d {
		delete(r.mu.docs, d.key)
	}
}

// has reports whether a document is this node's, as it is.
func (r *Replicator) has(d *document) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.docs[d.key] == d
}

// crashed writes down that a run has failed, where documents tell that.
func (r *Replicator) crashed(ctx context.Context, j *job, err error) {
	r.log.Warn("a replication has failed", zap.String("replication", j.ID), zap.String("reason", describe(err)), zap.Error(err))
	if j.doc != nil {
		r.tellState(ctx, j.doc, docState{name: "error", reason: describe(err), id: j.ID})
	}
}

// tellState writes a state that is only told with [replicator] update_docs: that
// the replication was started, which is told once, or has failed.
func (r *Replicator) tellState(ctx context.Context, d *document, state docState) {
	if !r.config().UpdateDocs {
		return
	}
	r.mu.Lock()
	tell := r.mu.docs[d.key] == d && (!d.told || state.name != "triggered")
	d.told = state.name == "triggered"
	r.mu.Unlock()
	if tell {
		r.writeState(ctx, d, state)
	}
}

// documents returns the documents of a database, of all with an empty name, whose
// replications this node runs.
func (r *Replicator) documents(db string) []*document {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []*document
	for key, d := range r.mu.docs {
		if db == "" || key.db == db {
			out = append(out, d)
		}
	}
	return out
}

// forgetDatabase stops the replications of a database that is gone.
func (r *Replicator) forgetDatabase(db string) {
	for _, d := range r.documents(db) {
		r.forget(d.key)
	}
}

// docState is a state that is written into a document.
type docState struct {
	name, reason string
	id           string // empty: the state does not tell it, see keepsID
	stats        *protocol.Stats
	began        time.Time
}

// keepsID reports whether an id that the document has stays, as in CouchDB: one that a
// passing state has told goes with that, unless documents tell passing states.
func (s *docState) keepsID(body []byte, passing bool) bool {
	before, _ := doc.Unquote(doc.Lookup(body, "_replication_state"))
	return s.id == "" && (passing || before != "triggered" && before != "error")
}

// The states that end the replication of a document; documents tell them always.
const (
	Completed = "completed"
	Failed    = "failed"
)

// appendMembers appends the members of the state, each with a comma in front.
func (s *docState) appendMembers(dst []byte, now time.Time) []byte {
	text := func(name, value string) {
		if value != "" {
			dst = append(append(append(dst, `,"_replication_`...), name...), `":`...)
			dst = doc.AppendString(dst, value)
		}
	}
	text("id", s.id)
	text("state", s.name)
	text("state_time", timestamp(now))
	text("state_reason", s.reason)
	if s.stats != nil {
		dst = append(dst, `,"_replication_stats":`...)
		dst = appendInfo(dst, s.stats, false)
		dst = doc.AppendString(append(dst[:len(dst)-1], `,"start_time":`...), timestamp(s.began))
		dst = append(dst, '}')
	}
	return dst
}

// timestamp prints a time as documents and the scheduler have it.
func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// maxAttempts bounds how often a state is written over an edit that came in
// between.
const maxAttempts = 10

// writeState writes a state into a document, if it is still what the client
// wrote, and this node's. It reports whether there is nothing more to do.
func (r *Replicator) writeState(ctx context.Context, d *document, state docState) bool {
	if err := r.o.Owners.Check(ctx, d.slot, d.term); err != nil {
		return errors.Is(err, ownership.ErrLost)
	}
	err := r.o.Coordinator.Do(ctx, d.key.db, func(db *cluster.DB) error {
		for range maxAttempts {
			err := r.writeStateOnce(ctx, db, d, &state)
			if !fault.Is(err, fault.Conflict) {
				return err
			}
		}
		return fault.New(fault.Conflict, "Document update conflict.")
	})
	switch {
	case err == nil:
		r.stats.stateWritten(state.name)
		return true
	case fault.Is(err, fault.NotFound):
		return true
	}
	if ctx.Err() == nil {
		r.log.Warn("the state of a replication is not written", zap.String("database", d.key.db), zap.String("document", d.key.id), zap.Error(err))
	}
	return false
}

// writeStateOnce writes a state over the revision that is there. The error is
// fault.NotFound when the document is another one now.
func (r *Replicator) writeStateOnce(ctx context.Context, db *cluster.DB, d *document, state *docState) error {
	now, err := db.Open(ctx, cluster.OpenOptions{ID: d.key.id})
	if err != nil {
		return err
	}
	if clientText(now.Body) != d.text {
		return fault.New(fault.NotFound, "the document was edited")
	}
	keepsID := state.keepsID(now.Body, r.config().UpdateDocs)
	body := make([]byte, 0, len(now.Body)+256)
	err = doc.EachMember(now.Body, func(name string, value []byte) error {
		if !serverMember(name) || keepsID && name == "_replication_id" {
			body = doc.AppendString(append(body, ','), name)
			body = append(append(body, ':'), value...)
		}
		return nil
	})
	if err != nil {
		return err
	}
	body = append(state.appendMembers(body, time.Now()), '}')
	body[0] = '{'
	edit := shard.Edit{ID: d.key.id, Parent: now.Rev, Body: body}
	for _, a := range now.Atts {
		edit.Atts = append(edit.Atts, shard.EditAttachment{Attachment: a, Stub: true})
	}
	server := shard.User{Anonymous: true, Roles: []string{shard.AdminRole, "_replicator"}}
	results, err := db.Update(ctx, cluster.UpdateOptions{NewEdits: true, User: server}, []shard.Edit{edit})
	if err != nil {
		return err
	}
	return results[0].Err
}
