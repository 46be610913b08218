package meta

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"divan/storage/fault"
)

// Nodes ask each other, most often the leader, in messages of their own:
//
//	version (1) | kind | fields
//
// with fields in protobuf's wire format. An answer is version | fields.
// Unknown fields are skipped, so a newer node may send more than an older one
// understands.

const messageVersion = 1

// The versions of commands that this program understands; a node joins only
// when there is one that the cluster understands too. A version adds kinds:
//
//	2  kindDeleteExact
//	3  kindCreateHere, kindAlterExact, kindTakeOver, kindAmendNode, kindZone
const (
	oldestCommand = 1
	newestCommand = 3
)

// question numbers the kinds of requests. Numbers are never reused.
type question byte

const (
	askPropose question = 1 // have the group agree on a command
	askIndex   question = 2 // which command was the last one acknowledged?
	askJoin    question = 3 // take a node in, or note what changed about it
	askStats   question = 4 // how far is your log?
)

// request is the sum of all questions; the fields of other kinds are zero.
type request struct {
	kind    question
	command []byte
	join    joinRequest
}

// joinRequest is what a node says of itself.
type joinRequest struct {
	node           Node
	uuid           string // of the cluster that it belongs to; empty when it belongs to none yet
	fresh          bool   // it has no state: whatever it once voted for is forgotten
	relayed        bool   // by a node that does not lead; not relayed again
	oldest, newest uint64 // versions of commands that it understands
}

// Field numbers of requests.
const (
	reqCommand = 1
	reqNode    = 2
	reqUUID    = 3
	reqFresh   = 4
	reqRelayed = 5
	reqOldest  = 6
	reqNewest  = 7
)

func (r *request) encode() []byte {
	b := []byte{messageVersion, byte(r.kind)}
	switch r.kind {
	case askPropose:
		b = appendBytes(b, reqCommand, r.command)
	case askJoin:
		b = appendBytes(b, reqNode, r.join.node.appendBinary(nil))
		b = appendText(b, reqUUID, r.join.uuid)
		b = appendFlag(b, reqFresh, r.join.fresh)
		b = appendFlag(b, reqRelayed, r.join.relayed)
		b = appendNumber(b, reqOldest, r.join.oldest)
		b = appendNumber(b, reqNewest, r.join.newest)
	case askIndex, askStats:
	}
	return b
}

func decodeRequest(b []byte) (*request, error) {
	if len(b) < 2 || b[0] != messageVersion {
		return nil, fmt.Errorf("%w: version of a request", errMalformed)
	}
	r := &request{kind: question(b[1])}
	if r.kind < askPropose || r.kind > askStats {
		return nil, fmt.Errorf("%w: request of unknown kind %d; a newer version sent it", errMalformed, r.kind)
	}
	err := eachField(b[2:], func(f field) (err error) {
		switch {
		case r.kind == askPropose && f.num == reqCommand:
			r.command = f.bytes
		case r.kind == askJoin:
			err = r.join.field(f)
		}
		return err
	})
	if err == nil && r.kind == askJoin && r.join.node.Name == "" {
		err = fmt.Errorf("%w: no node that could join", errMalformed)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (j *joinRequest) field(f field) (err error) {
	switch f.num {
	case reqNode:
		j.node, err = decodeNode(f.bytes)
	case reqUUID:
		j.uuid = f.text()
	case reqFresh:
		j.fresh = f.number != 0
	case reqRelayed:
		j.relayed = f.number != 0
	case reqOldest:
		j.oldest = f.number
	case reqNewest:
		j.newest = f.number
	}
	return err
}

// outcome says what became of a request.
type outcome uint64

const (
	outcomeDone      outcome = 1 // carried out; refusal says whether with an error for the client
	outcomeNotLeader outcome = 2 // certainly not carried out: the node asked does not lead
)

// answer is the sum of all answers.
type answer struct {
	outcome   outcome
	index     uint64 // of the last command that the asker has to apply; of the log for stats
	term      uint64 // that this entry was written in
	refusal   *fault.Error
	db        *Database
	contactMS uint64 // stats: since the leader was last heard of
	uuid      string // join: of the cluster
	origin    string // join: of the cluster; a version before it says nothing
}

// Field numbers of answers.
const (
	ansOutcome = 1
	ansIndex   = 2
	ansTerm    = 3
	ansKind    = 4
	ansCode    = 5
	ansReason  = 6
	ansDB      = 7
	ansContact = 8
	ansUUID    = 9
	ansOrigin  = 10
)

func (a *answer) encode() []byte {
	b := []byte{messageVersion}
	b = appendNumber(b, ansOutcome, uint64(a.outcome))
	b = appendNumber(b, ansIndex, a.index)
	b = appendNumber(b, ansTerm, a.term)
	if a.refusal != nil {
		b = appendNumber(b, ansKind, uint64(a.refusal.Kind))
		b = appendText(b, ansCode, a.refusal.Code)
		b = appendText(b, ansReason, a.refusal.Reason)
	}
	if a.db != nil {
		b = appendBytes(b, ansDB, a.db.appendBinary(nil))
	}
	b = appendNumber(b, ansContact, a.contactMS)
	b = appendText(b, ansUUID, a.uuid)
	return appendText(b, ansOrigin, a.origin)
}

func decodeAnswer(b []byte) (*answer, error) {
	if len(b) < 1 || b[0] != messageVersion {
		return nil, fmt.Errorf("%w: version of an answer", errMalformed)
	}
	a := &answer{}
	var refusal fault.Error
	err := eachField(b[1:], func(f field) (err error) {
		switch f.num {
		case ansOutcome:
			a.outcome = outcome(f.number)
		case ansIndex:
			a.index = f.number
		case ansTerm:
			a.term = f.number
		case ansKind:
			refusal.Kind = fault.Kind(min(f.number, 255))
		case ansCode:
			refusal.Code = f.text()
		case ansReason:
			refusal.Reason = f.text()
		case ansDB:
			a.db, err = decodeDatabase(f.bytes)
		case ansContact:
			a.contactMS = f.number
		case ansUUID:
			a.uuid = f.text()
		case ansOrigin:
			a.origin = f.text()
		}
		return err
	})
	if err == nil && (a.outcome < outcomeDone || a.outcome > outcomeNotLeader) {
		err = fmt.Errorf("%w: outcome %d", errMalformed, a.outcome)
	}
	if err != nil {
		return nil, err
	}
	if refusal.Kind != 0 {
		a.refusal = &refusal
	}
	return a, nil
}

// appendFlag leaves false out.
func appendFlag(b []byte, num protowire.Number, v bool) []byte {
	if !v {
		return b
	}
	return appendNumber(b, num, 1)
}
