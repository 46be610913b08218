package wire

import (
	"time"

	"google.golang.org/grpc/mem"

	"divan/cluster/wire/wirepb"
	"divan/storage/fault"
)

// received is a frame that has come in. Its pieces alias the buffers it came
// in, until release.
type received struct {
	wirepb.Frame
	buffer mem.Buffer
}

func (r *received) take(data mem.BufferSlice) error {
	r.buffer = data.MaterializeToBuffer(buffers{})
	r.ResetVT()
	return r.UnmarshalVTUnsafe(r.buffer.ReadOnlyData())
}

func (r *received) release() {
	if r.buffer != nil {
		r.buffer.Free()
		r.buffer = nil
	}
}

// inMessage is a call or answer of which everything has come.
type inMessage struct {
	call    uint64
	op      wirepb.Op
	to      Addressee
	timeout time.Duration // 0: none
	repair  bool
	body    []byte
	err     error // an answer: why there is none
}

// reassembly puts pieces together. It is used by one goroutine.
type reassembly struct {
	open map[uint64]*inMessage
	need map[uint64]int
}

// add takes a piece and returns what it completes, nil when more pieces
// follow. The result does not alias the piece.
func (a *reassembly) add(p *wirepb.Piece) (*inMessage, error) {
	w := a.open[p.Call]
	switch {
	case w != nil:
		w.body = append(w.body, p.Data...)
	case p.Size > bodySize:
		return nil, fault.Newf(fault.Internal, "a message of %d bytes is too large", p.Size)
	default:
		w = &inMessage{
			call: p.Call, op: p.Op, to: Addressee{p.Copy, p.Generation},
			timeout: time.Duration(p.Timeout) * time.Microsecond, repair: p.Repair, err: DecodeFault(p.Fault),
		}
		// Memory is taken as it is filled, not as it is announced.
		w.body = append(make([]byte, 0, max(min(int(p.Size), firstBody), len(p.Data))), p.Data...)
		if int(p.Size) <= len(p.Data) {
			return w, nil
		}
		if a.open == nil {
			a.open, a.need = map[uint64]*inMessage{}, map[uint64]int{}
		}
		a.open[p.Call], a.need[p.Call] = w, int(p.Size)
		return nil, nil
	}
	switch need := a.need[p.Call]; {
	case len(w.body) < need:
		return nil, nil
	case len(w.body) > need:
		return nil, fault.Newf(fault.Internal, "a message of %d bytes has more", need)
	}
	a.drop(p.Call)
	return w, nil
}

// drop forgets a call that will not be completed.
func (a *reassembly) drop(call uint64) {
	delete(a.open, call)
	delete(a.need, call)
}
