// Package history holds what clients of a cluster did and were told, what the
// copies held in the end, and the rules that both must keep. It is pure apart
// from Log, which collects.
package history

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// Outcome says what an answer means for what was asked.
type Outcome uint8

// The outcomes.
const (
	Unknown  Outcome = iota // no answer, or one that does not tell (5xx)
	Acked                   // done (200, 201)
	Accepted                // done on fewer copies than asked for (202)
	Conflict                // refused because of what is there (409)
	Refused                 // refused for another reason (other 4xx)
)

// String implements fmt.Stringer.
func (o Outcome) String() string {
	return [...]string{"unknown", "acknowledged", "accepted", "conflict", "refused"}[o]
}

// OfStatus returns what an HTTP status says; 0 is no answer.
func OfStatus(status int) Outcome {
	switch {
	case status == 202:
		return Accepted
	case status >= 200 && status < 300:
		return Acked
	case status == 409:
		return Conflict
	case status >= 400 && status < 500:
		return Refused
	}
	return Unknown
}

// Done reports whether the answer says that it was done.
func (o Outcome) Done() bool { return o == Acked || o == Accepted }

// Span is when something was asked and answered, since the start of the run.
type Span struct{ Call, Return time.Duration }

// Within reports whether the span lies in another.
func (s Span) Within(o Span) bool { return s.Call >= o.Call && s.Return <= o.Return }

// Edit is one edit of one document.
type Edit struct {
	Span
	Node, DB, ID string
	Number       int    // in the body, of this edit only; 0 for none
	Parent       string // the revision that the client named
	Rev          string // as answered; of a replicated edit as sent
	Quorum       int    // w, as asked or by default
	Deleted      bool
	Ancestors    []string          // of a replicated edit, newest first; others have a Parent only
	Attachments  map[string]string // name → sum of the content: all that the revision has
	Outcome      Outcome
}

// Purge is the purge of one revision.
type Purge struct {
	Span
	Node, DB, ID, Rev string
	Outcome           Outcome
}

// Read is one read of the winner of a document.
type Read struct {
	Span
	Node, DB, ID string
	Quorum       int // r, as asked or by default
	Status       int
	Rev          string
	Number       int
	Ancestors    []string // newest first
}

// Since says where a page of a changes feed began: behind Rows rows of an
// earlier page.
type Since struct {
	Page int // index in History.Pages; Beginning or Now
	Rows int // how many rows of it; all of them: its last sequence
}

// Where a page begins that follows no other.
const (
	Beginning = -1
	Now       = -2
)

// Page is an answer of a changes feed with style=all_docs.
type Page struct {
	Span
	Node, DB string
	Since    Since
	Rows     []Row
	Last     string // last_seq; empty when the feed broke off
}

// Row is one change.
type Row struct {
	Seq, ID string
	Leaves  []string
}

// MetaKind is an operation on the metadata of a database.
type MetaKind uint8

// The operations.
const (
	Create MetaKind = iota
	Delete
	Look // does it exist?
	SetSecurity
	GetSecurity
)

// Meta is one operation on the metadata.
type Meta struct {
	Span
	Node, DB string
	Kind     MetaKind
	Value    int // of the security object; 0 is that of a new database
	Status   int // 0: no answer
}

// Register is the write or read of a number that only grows and has one
// writer, in a local document.
type Register struct {
	Span
	Path    string
	Write   bool
	Value   int
	Outcome Outcome
}

// Failure is an answer that only a fault may cause: none, or a status of 500
// and more.
type Failure struct {
	Span
	Node, Request string
	Status        int
	Text          string
}

// Leaf is a leaf of a document on one copy.
type Leaf struct {
	Rev         string
	Deleted     bool
	Number      int
	Ancestors   []string          // newest first
	Attachments map[string]string // name → sum of the content
}

// Copy is the content of one copy of a range in the end.
type Copy struct {
	DB, Range, Node string
	Docs            map[string][]Leaf // winner first
	Numbers         map[int]string    // numbers in the bodies of all revisions that are stored → id
}

// Replay is a changes feed that was read in the end from a sequence that was
// handed out before.
type Replay struct {
	DB    string
	Since Since
	Rows  map[string][]string // id → leaves
	Err   string
}

// View is the rows of a view that shows each document, read in the end.
type View struct {
	Node, DB string
	Rows     map[string]string // id → revision
	Err      string
}

// History is everything that is known of one run.
type History struct {
	Edits     []Edit
	Purges    []Purge
	Reads     []Read
	Pages     []Page
	Metas     []Meta
	Registers []Register
	Failures  []Failure
	Calm      []Span   // when nothing was broken, nor had been shortly before
	Wrong     []string // what a client saw to be wrong by itself
	// Voting is when all nodes had a vote on metadata; 0: they never had.
	Voting time.Duration
	// Losses are the times until which one disk may have been the only one
	// that had what was not written with a quorum, and then was lost.
	Losses []Span

	Copies  []Copy
	Replays []Replay
	Views   []View
}

// Log collects a history from several goroutines.
type Log struct {
	mu struct {
		sync.Mutex
		history History
		number  int
	}
}

// Number returns a number that no edit has had.
func (l *Log) Number() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.number++
	return l.mu.number
}

// Note changes the history; f must not keep it.
func (l *Log) Note(f func(h *History)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(&l.mu.history)
}

// History returns what was collected; nothing may be added afterwards.
func (l *Log) History() *History {
	l.mu.Lock()
	defer l.mu.Unlock()
	return &l.mu.history
}

// copiesOfAll is how many copies of each range the databases of documents have.
const copiesOfAll = 3

// quorum is how many of them are a majority.
const quorum = 2

// Check returns every violation of the rules, as text.
func Check(h *History) []string {
	c := &checker{h: h, docs: map[string]*document{}, found: h.Wrong}
	c.index()
	c.copiesAgree()
	c.editsSurvive()
	c.refusalsLeaveNothing()
	c.purgesHold()
	c.deletedDatabasesStayGone()
	c.renewedKeep()
	c.changesMissNothing()
	c.readsSeeWrites()
	c.viewsAreWhole()
	c.registersGrow()
	c.metadataIsLinear()
	c.noFailure()
	return c.found
}

// document is all that is known about one document.
type document struct {
	db, id string
	edits  []*Edit
	purges []*Purge
	reads  []*Read
	byRev  map[string]*Edit // of those whose revision is known
	purged map[string]bool  // revisions that a purge may have removed
}

type checker struct {
	h     *History
	docs  map[string]*document // by db and id
	found []string
}

func (c *checker) report(format string, args ...any) {
	c.found = append(c.found, fmt.Sprintf(format, args...))
}

func (c *checker) document(db, id string) *document {
	key := db + "/" + id
	d := c.docs[key]
	if d == nil {
		d = &document{db: db, id: id, byRev: map[string]*Edit{}, purged: map[string]bool{}}
		c.docs[key] = d
	}
	return d
}

// sorted returns the documents in an order that does not change.
func (c *checker) sorted() []*document {
	out := make([]*document, 0, len(c.docs))
	for _, key := range slices.Sorted(maps.Keys(c.docs)) {
		out = append(out, c.docs[key])
	}
	return out
}

func (c *checker) index() {
	for i := range c.h.Edits {
		e := &c.h.Edits[i]
		d := c.document(e.DB, e.ID)
		d.edits = append(d.edits, e)
		if e.Rev != "" {
			d.byRev[e.Rev] = e
		}
	}
	for i := range c.h.Purges {
		p := &c.h.Purges[i]
		d := c.document(p.DB, p.ID)
		d.purges = append(d.purges, p)
	}
	for i := range c.h.Reads {
		r := &c.h.Reads[i]
		d := c.document(r.DB, r.ID)
		d.reads = append(d.reads, r)
	}
	for _, d := range c.docs {
		for _, p := range d.purges {
			d.mayBeGone(p.Rev)
		}
	}
}

// mayBeGone marks a revision and its ancestors: a purge of it may have taken
// them along.
func (d *document) mayBeGone(rev string) {
	for rev != "" && !d.purged[rev] {
		d.purged[rev] = true
		e := d.byRev[rev]
		if e == nil {
			d.basesMayBeGone(rev)
			return
		}
		for _, a := range e.Ancestors {
			d.purged[a] = true
		}
		rev = e.Parent
	}
}

// basesMayBeGone is mayBeGone for what a revision may be based on that no
// answer named: it was written by an edit whose outcome is not known, and read.
func (d *document) basesMayBeGone(rev string) {
	for _, e := range d.edits {
		if e.Rev == "" && e.Outcome == Unknown && e.Parent != "" && generation(e.Parent)+1 == generation(rev) {
			d.mayBeGone(e.Parent)
		}
	}
}

// Summary tells how much a history holds.
func (h *History) Summary() string {
	edits, purges, statuses := map[Outcome]int{}, map[Outcome]int{}, map[int]int{}
	for _, e := range h.Edits {
		edits[e.Outcome]++
	}
	for _, p := range h.Purges {
		purges[p.Outcome]++
	}
	for _, t := range h.Failures {
		statuses[t.Status]++
	}
	c := checker{h: h}
	reads := 0
	for i := range h.Reads {
		if c.h.calm(h.Reads[i].Span) {
			reads++
		}
	}
	return fmt.Sprintf("edits %v, purges %v, reads %d (%d calm), pages %d, metadata %d, local documents %d, troubles by status %v, copies %d, replays %d, views %d",
		edits, purges, len(h.Reads), reads, len(h.Pages), len(h.Metas), len(h.Registers), statuses, len(h.Copies), len(h.Replays), len(h.Views))
}
