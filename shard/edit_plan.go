package shard

import (
	"divan/storage/doc"
	"divan/storage/fault"
)

const (
	localPrefix  = "_local/"
	designPrefix = "_design/"
)

// editPlan decides the edits of one request in their order. The request's
// goroutine does it first, on documents as it read them, in parallel with all
// other requests. When none of those documents has changed since, the writer
// takes the outcome over; otherwise it decides again.
type editPlan struct {
	touchedDocs
	edits  []Edit
	limit  int // of revisions; 0: the default
	rules  editRules
	staged bool            // on the writer: the documents are those of the group
	absent map[int]bool    // edits that refer to content which is not here, nil: none
	purged map[int]doc.Rev // edits whose revision has been purged here, nil: none
	locals []localEdit
}

// decide decides everything. An error is the whole request's: nothing of it is
// done.
func (p *editPlan) decide() error {
	p.rules.begin()
	for i := range p.edits {
		if err := p.rules.edit(p, i); err != nil {
			return err
		}
	}
	return nil
}

// open returns the document of an edit with as much of its history as the edit needs.
func (p *editPlan) open(e *Edit, interactive bool) (*docState, error) {
	s, err := p.state(e.ID, e.Parent.IsZero() && e.Path.Start <= 1)
	if err != nil {
		return nil, err
	}
	return s, s.prepare(e, interactive, p.limit, p.from)
}

// base returns the content of the revision that stubs and validation functions
// look at.
func (p *editPlan) base(s *docState, rev doc.Rev) (doc.Revision, error) {
	if rev.IsZero() {
		return doc.Revision{}, nil
	}
	content, ok, err := s.revision(rev)
	if err != nil || ok {
		return content, err
	}
	return p.from.revision(s.id, rev)
}

// local decides the write of a local document and returns its revision.
func (p *editPlan) local(e *Edit) (doc.Rev, error) {
	w, rev, err := decideLocal(e)
	if err == nil {
		p.locals = append(p.locals, w)
	}
	return rev, err
}

// docSource is where edits get documents from: on the request's goroutine the
// store, on the writer's the group.
type docSource interface {
	// state returns a document to decide on; the caller owns it. fresh says that it most
	// likely does not exist.
	state(id string, fresh bool) (*docState, error)
	revision(id string, rev doc.Rev) (doc.Revision, error)
	historySource
}

// touchedDocs is the documents that one request touches, each once.
type touchedDocs struct {
	from  docSource
	most  int         // documents that there may be
	order []*docState // in order of their first edit
	byID  map[string]*docState
}

// manyStates is from when on the documents of a request get an index.
const manyStates = 8

// state returns a document, the same state for all edits of it. fresh says that it most
// likely does not exist: the edit names no earlier revision.
func (t *touchedDocs) state(id string, fresh bool) (*docState, error) {
	if t.byID != nil {
		if s := t.byID[id]; s != nil {
			return s, nil
		}
	} else {
		for _, s := range t.order {
			if s.id == id {
				return s, nil
			}
		}
	}
	s, err := t.from.state(id, fresh)
	if err != nil {
		return nil, err
	}
	t.order = append(t.order, s)
	if t.byID != nil {
		t.byID[id] = s
	} else if len(t.order) > manyStates {
		t.byID = make(map[string]*docState, t.most)
		for _, known := range t.order {
			t.byID[known.id] = known
		}
	}
	return s, nil
}

// errPurged refuses an edit whose revision has been purged here. Only the
// sender can know whether its edit is older than the purge. One that brings the
// decision of another copy has to ask that copy once it has got the purge as well;
// one that asks for a decision still waits for it, or does not.
func errPurged(r doc.Rev) *fault.Error {
	return fault.Newf(fault.Purged, "Revision %s has been purged.", r)
}

func errAbsentContent(id string) *fault.Error {
	return fault.Newf(fault.Unavailable, "The content of an attachment of %s is not in this copy.", id)
}
