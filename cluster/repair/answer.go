package repair

import (
	"context"
	"encoding/hex"
	"encoding/json"

	"divan/storage/fault"
)

// Service is the name under which nodes ask each other's repair.
const Service = "repair"

// message is a request to another node's repair. Op says which of the other
// fields count.
type message struct {
	Op     string      `json:"op"`
	Pairs  [][2]string `json:"pairs,omitempty"`  // missed, sync: copy, node to push it to; empty: all others
	Copies []string    `json:"copies,omitempty"` // rebuild, states
	Copy   string      `json:"copy,omitempty"`   // pushed: and the next two
	UUID   string      `json:"uuid,omitempty"`   // of the copy that was pushed to
	Part   bool        `json:"part,omitempty"`   // the pushing copy is incomplete itself
	Since  uint64      `json:"since,omitempty"`  // digest: of copy, behind that sequence, and the next two
	Limit  int         `json:"limit,omitempty"`
	Seed   *seed       `json:"seed,omitempty"`
}

const (
	opMissed  = "missed"  // push to these nodes, they miss something
	opSync    = "sync"    // push at once, also what has failed a moment ago
	opRebuild = "rebuild" // push these copies to me, they are incomplete, and tell me when I have everything
	opPushed  = "pushed"  // you have everything
	opDigest  = "digest"  // what your copy has taken; the answer is no reply
	opStates  = "states"  // tell me what these copies of yours are
)

// reply is the answer to rebuild and states; to the others it is empty.
type reply struct {
	States map[string]state `json:"states,omitempty"` // by copy
}

// maxNames bounds the copies named in one message.
const maxNames = 1000

// most is how many copies a message may name.
func (m *message) most() int {
	if m.Op == opStates {
		return maxStates
	}
	return maxNames
}

// Answer does what another node asks of this one: the service "repair". The
// errors are fault.BadRequest for a message that it does not understand, and
// those of reading a copy.
func (r *Repair) Answer(ctx context.Context, from string, request []byte) ([]byte, error) {
	var m message
	err := json.Unmarshal(request, &m)
	if most := m.most(); err != nil || len(m.Copies) > most || len(m.Pairs) > most {
		return nil, fault.Wrap(fault.BadRequest, "malformed request to repair", err)
	}
	var a reply
	switch m.Op {
	case opMissed, opSync:
		want := (*schedule).hint
		if m.Op == opSync {
			want = (*schedule).sync
		}
		for _, p := range m.Pairs {
			r.request(pair{p[0], p[1]}, want)
		}
	case opRebuild:
		a.States, err = r.rebuildFor(ctx, from, m.Copies)
	case opStates:
		a.States, err = statesOf(r.o.Local, m.Copies)
	case opDigest:
		return digest(ctx, r.o.Local, &m)
	case opPushed:
		err = r.pushedBy(ctx, from, &m)
	default:
		err = fault.New(fault.BadRequest, "unknown request to repair")
	}
	if err != nil {
		return nil, err
	}
	out, _ := json.Marshal(a) // strings: it cannot fail
	return out, nil
}

// ask sends a message to another node.
func (r *Repair) ask(ctx context.Context, node string, m message) (reply, error) {
	var a reply
	out, err := r.askRaw(ctx, node, m)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(out, &a); err != nil {
		return a, fault.Wrap(fault.Internal, "malformed answer of repair", err)
	}
	return a, nil
}

func (r *Repair) askRaw(ctx context.Context, node string, m message) ([]byte, error) {
	text, _ := json.Marshal(m) // strings and numbers: it cannot fail
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return r.o.Ask(ctx, node, Service, text)
}

// rebuildFor starts pushes to a node whose copies are incomplete and tells what
// this node's copies are.
func (r *Repair) rebuildFor(ctx context.Context, node string, copies []string) (map[string]state, error) {
	states := make(map[string]state, len(copies))
	for _, name := range copies {
		_, _, err := r.o.Local.Position(ctx, name)
		switch {
		case fault.Is(err, fault.NoCopy):
			states[name] = stateAbsent
			continue
		case err != nil:
			return nil, err
		case r.o.Local.Rebuilding(name):
			states[name] = stateIncomplete
		default:
			states[name] = stateComplete
		}
		r.request(pair{name, node}, (*schedule).rebuild)
	}
	return states, nil
}

// tellPushed tells a node that its incomplete copy has everything that this
// node's copy had.
func (r *Repair) tellPushed(ctx context.Context, p pair, uuid [16]byte, part bool) error {
	_, err := r.ask(ctx, p.node, message{Op: opPushed, Copy: p.copy, UUID: hex.EncodeToString(uuid[:]), Part: part})
	return err
}
