package replicator

import (
	"context"
	"net/url"
	"slices"
	"sync"
	"time"

	"divan/cluster/meta"
	"divan/replicator/ownership"
	"divan/replicator/spec"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
	"divan/storage/pause"
)

// Documents are the documents of replicator databases whose replications this node
// runs. It is safe for concurrent use.
//
// LOCKS: mu guards the documents; the runner of the jobs has its own, which is taken
// while mu is held, never the other way round. Nothing is read or written while one is
// held.
type Documents struct {
	jobs   *Jobs
	opener *opener
	states *stateWriter
	config settings
	meta   *meta.Meta
	owners *ownership.Table
	others func(ctx context.Context, path string) [][]byte // see Options.Others
	wake   chan struct{}                                   // has one token when the resolver is to look

	mu struct {
		sync.Mutex
		docs map[docKey]*document
	}
}

func newDocuments(o *Options, open *opener, jobs *Jobs, states *stateWriter) *Documents {
	s := &Documents{
		jobs: jobs, opener: open, states: states, config: settings{o.Config}, meta: o.Meta, owners: o.Owners, others: o.Others,
		wake: make(chan struct{}, 1),
	}
	s.mu.docs = map[docKey]*document{}
	return s
}

// seen takes notice of a document as it is now; d is nil for one that is
// deleted.
func (s *Documents) seen(ctx context.Context, key docKey, d *shard.Doc) {
	slot := ownership.Slot(key.db, key.id)
	term, mine := s.mine(ctx, slot)
	if d == nil || !mine {
		s.forget(key)
		return
	}
	state, _ := doc.Unquote(doc.Lookup(d.Body, "_replication_state"))
	if state == Completed || state == Failed {
		s.forget(key)
		return
	}
	next := &document{key: key, slot: slot, term: term, text: clientText(d.Body), began: time.Now()}
	s.mu.Lock()
	old := s.mu.docs[key]
	s.mu.Unlock()
	if old != nil && old.text == next.text && old.term == term {
		return
	}
	s.forget(key)
	var err error
	if next.spec, err = spec.ParseDocument(d.Body, key.db, key.id, s.config.defaults(shard.User{Anonymous: true})); err != nil {
		next.spec = &spec.Spec{}
	}
	next.resolving = !next.filtered()
	s.mu.Lock()
	s.mu.docs[key] = next
	s.mu.Unlock()
	if err != nil {
		s.fail(ctx, next, fault.Reason(err))
		return
	}
	if next.filtered() {
		s.poke()
		return
	}
	s.start(ctx, next, next.spec.ID(s.config.uuid(), ""))
}

// mine tells whether this node owns a slot. While it is named as the owner, but has
// not heard of the group for too long, it waits.
func (s *Documents) mine(ctx context.Context, slot int) (term uint64, mine bool) {
	for {
		term, mine = s.owners.Mine(slot)
		owner, _ := s.owners.Owner(slot)
		if mine || owner.Node != s.meta.Self() || pause.For(ctx, time.Second) != nil {
			return term, mine
		}
	}
}

// fail writes down that a replication can never run, now or when that is possible.
func (s *Documents) fail(ctx context.Context, d *document, reason string) {
	s.mu.Lock()
	d.failed, d.resolving = reason, true
	s.mu.Unlock()
	written := s.states.write(ctx, d, docState{name: Failed, reason: reason})
	s.mu.Lock()
	defer s.mu.Unlock()
	d.resolving = false
	if s.mu.docs[d.key] != d {
		return // it was edited or deleted meanwhile
	}
	if written {
		delete(s.mu.docs, d.key)
		return
	}
	d.failedAttempt(reason, time.Now())
	s.poke()
}

// forget stops the replication of a document.
func (s *Documents) forget(key docKey) {
	s.mu.Lock()
	var j *job
	if d := s.mu.docs[key]; d != nil {
		j = d.job
		delete(s.mu.docs, key)
	}
	s.mu.Unlock()
	if j != nil {
		s.jobs.stop(j, ownership.ErrLost)
	}
}

// start gives the replication of a document to the scheduler.
func (s *Documents) start(ctx context.Context, d *document, id spec.ID) {
	j := s.newJob(d, id)
	s.mu.Lock()
	d.resolving = false
	if s.mu.docs[d.key] != d { // it was edited or deleted meanwhile
		s.mu.Unlock()
		return
	}
	there := s.jobs.add(j)
	if there == nil {
		d.job, d.attempts, d.reason = j, 0, ""
	} else if there.doc == nil {
		d.failedAttempt("The same replication runs for a request.", time.Now())
	}
	s.mu.Unlock()
	if there != nil && there.doc == nil {
		s.poke() // it is looked at again when it is due
	}
	if there != nil && there.doc != nil {
		s.fail(ctx, d, duplicate(id, d.key, there.doc.key))
	}
}

// newJob returns the job of a document, which is not registered yet.
func (s *Documents) newJob(d *document, id spec.ID) *job {
	j := newJob(d.spec, id, d.slot, d.term)
	j.doc = d
	j.Run = func(ctx context.Context) error { return s.run(ctx, j) }
	j.Ended = func(ctx context.Context, _ error) { s.completed(ctx, j) } // it is not transient: no crash ends it
	return j
}

// duplicate says why the second of two documents with one replication fails.
func duplicate(id spec.ID, second, first docKey) string {
	return "Replication `" + id.String() + "` specified by document `" + second.id + "` already started, triggered by document `" +
		first.id + "` from db `" + first.db + "`"
}

// completed writes down that the replication of a document is done. It tries
// until that worked, the document was changed, or is another node's.
func (s *Documents) completed(ctx context.Context, j *job) {
	d := j.doc
	stats, _, _ := j.figures()
	state := docState{name: Completed, stats: &stats, began: j.began}
	for wait := time.Second; ctx.Err() == nil && s.has(d); wait = min(2*wait, time.Minute) {
		if s.states.write(ctx, d, state) || pause.For(ctx, wait) != nil {
			break
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.docs[d.key] == d {
		delete(s.mu.docs, d.key)
	}
}

// has reports whether a document is this node's, as it is.
func (s *Documents) has(d *document) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.docs[d.key] == d
}

// run is one run of the replication of a document.
func (s *Documents) run(ctx context.Context, j *job) error {
	progress := j.begin()
	if err := s.onlyOne(ctx, j); err != nil {
		return err
	}
	s.tellState(ctx, j.doc, docState{name: "triggered", id: j.ID})
	err := s.jobs.run(ctx, j, progress)
	if err != nil && ctx.Err() == nil {
		s.tellState(ctx, j.doc, docState{name: "error", reason: describe(err), id: j.ID})
	}
	return err
}

// onlyOne fails the replication of a document when another node runs the same
// one for another document that came first. Both may ask at once: then they agree
// on which that is.
func (s *Documents) onlyOne(ctx context.Context, j *job) error {
	if j.alone || len(s.meta.Nodes()) < 2 {
		return nil
	}
	own := [...]string{timestamp(j.began), j.doc.key.db, j.doc.key.id}
	for _, row := range s.others(ctx, "/_scheduler/jobs/"+url.PathEscape(j.ID)) {
		var other [len(own)]string
		for i, name := range [...]string{"start_time", "database", "doc_id"} {
			other[i], _ = doc.Unquote(doc.Lookup(row, name))
		}
		first := docKey{other[1], other[2]}
		if first.id == "" || first == j.doc.key || slices.Compare(own[:], other[:]) < 0 {
			continue // of a request, or of the node that had this document before
		}
		reason := duplicate(j.id, j.doc.key, first)
		s.states.write(ctx, j.doc, docState{name: Failed, reason: reason})
		return fault.New(fault.Conflict, reason)
	}
	j.alone = true
	return nil
}

// tellState writes a state that is only told with [replicator] update_docs: that
// the replication was started, which is told once, or has failed.
func (s *Documents) tellState(ctx context.Context, d *document, state docState) {
	if !s.config.config().UpdateDocs {
		return
	}
	s.mu.Lock()
	tell := s.mu.docs[d.key] == d && (!d.told || state.name != "triggered")
	d.told = state.name == "triggered"
	s.mu.Unlock()
	if tell {
		s.states.write(ctx, d, state)
	}
}

// ofDatabase returns the documents of a database, of all with an empty name, whose
// replications this node runs.
func (s *Documents) ofDatabase(db string) []*document {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*document
	for key, d := range s.mu.docs {
		if db == "" || key.db == db {
			out = append(out, d)
		}
	}
	return out
}

// forgetDatabase stops the replications of a database that is gone.
func (s *Documents) forgetDatabase(db string) {
	for _, d := range s.ofDatabase(db) {
		s.forget(d.key)
	}
}

// keepOnly forgets the documents of a database that are not there any more.
func (s *Documents) keepOnly(db string, there map[string]bool) {
	for _, d := range s.ofDatabase(db) {
		if !there[d.key.id] {
			s.forget(d.key)
		}
	}
}

// stopLost stops the replications that are not this node's any more.
func (s *Documents) stopLost(terms *[meta.SlotCount]uint64) {
	for _, d := range s.ofDatabase("") {
		if terms[d.slot] != d.term {
			s.forget(d.key)
		}
	}
}
