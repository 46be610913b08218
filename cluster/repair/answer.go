package repair

import (
	"context"
	"encoding/json"

	"divan/storage/fault"
)

// Service is the name under which nodes ask each other's repair.
const Service = "repair"

// message is a request to another node's repair. Op says which of the other
// fields count.
type message struct {
	Op     string      `json:"op"`
	Pairs  [][2]string `json:"pairs,omitempty"`  // missed, sync: copy to push to and its node; empty: all others
	Copy   string      `json:"copy,omitempty"`   // filled: and the next two
	Target uint64      `json:"target,omitempty"` // id of the copy that was pushed to
	Source uint64      `json:"source,omitempty"` // and of the one that has pushed
	Known  uint64      `json:"known,omitempty"`  // generation of the map that the source's node knew
	Since  uint64      `json:"since,omitempty"`  // digest: of copy, behind that sequence, and the next two
	Limit  int         `json:"limit,omitempty"`
	Seed   *seed       `json:"seed,omitempty"`
}

const (
	opMissed = "missed" // push to these nodes, they miss something
	opSync   = "sync"   // push at once, also what has failed a moment ago
	opFilled = "filled" // your joining copy has all that my full one had
	opDigest = "digest" // what your copy has taken; the only one whose answer says something
)

// maxNames bounds the copies named in one message.
const maxNames = 1000

// Answer does what another node asks of this one: the service "repair". The
// errors are fault.BadRequest for a message that it does not understand, and
// those of reading a copy.
func (r *Repair) Answer(ctx context.Context, from string, request []byte) ([]byte, error) {
	var m message
	err := json.Unmarshal(request, &m)
	if err != nil || len(m.Pairs) > maxNames {
		return nil, fault.Wrap(fault.BadRequest, "malformed request to repair", err)
	}
	switch m.Op {
	case opMissed, opSync:
		want := (*schedule).hint
		if m.Op == opSync {
			want = (*schedule).sync
		}
		for _, p := range m.Pairs {
			r.request(missing{p[0], p[1]}, want)
		}
	case opDigest:
		return digest(ctx, r.local, &m)
	case opFilled:
		r.joins.filledBy(&m)
	default:
		return nil, fault.New(fault.BadRequest, "unknown request to repair")
	}
	return []byte("{}"), nil
}
