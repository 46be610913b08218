package replica

import (
	"context"
	"testing"
	"testing/synctest"

	"divan/cluster/wire"
	"divan/cluster/wire/wirepb"
	"divan/shard"
	"divan/storage/fault"
)

// empty makes every operation answer with nothing.
func empty() wire.Operations {
	o := wire.NewOperations()
	for _, op := range all() {
		op.serve(&o, NewLocal(Held{}))
	}
	for op, c := range o.Calls {
		c.Do = func(context.Context, wire.Addressee, []byte) (wire.Message, error) { return &wirepb.Nothing{}, nil }
		o.Calls[op] = c
	}
	return o
}

// TestShortAnswers: a node that answers fewer questions than it was asked, as a
// faulty one may, is not believed.
func TestShortAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := serve(t, empty())
		ctx := t.Context()
		_, decide := Decide.On(ctx, Copy{At: p}, shard.DecideRequest{Copy: testCopy, Edits: make([]shard.Edit, 1)})
		_, follow := Follow.On(ctx, Copy{At: p}, shard.FollowRequest{Copy: testCopy, Edits: make([]shard.Edit, 1)})
		_, purge := Purge.On(ctx, Copy{At: p}, PurgeRequest{testCopy, make([]shard.PurgeItem, 1)})
		_, missing := Missing.On(ctx, Copy{At: p}, MissingRequest{testCopy, make([]shard.IDRevs, 1)})
		_, docs := DocsByID.On(ctx, Copy{At: p}, DocsByIDRequest{Copy: testCopy, IDs: make([]string, 1)})
		_, revs := OpenRevsMany.On(ctx, Copy{At: p}, OpenRevsManyRequest{testCopy, make([]shard.OpenRevsRequest, 1), 0})
		for _, err := range []error{decide, follow, purge, missing, docs, revs} {
			if !fault.Is(err, fault.Internal) {
				t.Error(err)
			}
		}
	})
}

// TestEveryOperationIsServed: an operation that is missing in the list of all is
// one that other nodes cannot ask for.
func TestEveryOperationIsServed(t *testing.T) {
	o := newLocal(t).Operations()
	for op, name := range wirepb.Op_name {
		_, call := o.Calls[wirepb.Op(op)]
		_, list := o.Listings[wirepb.Op(op)]
		if wanted := op != int32(wirepb.Op_NONE) && op != int32(wirepb.Op_ASK); (call || list) != wanted {
			t.Errorf("%s: served %t", name, call || list)
		}
	}
	if o.ReadAttachment == nil || o.PutAttachment == nil || o.Watch == nil {
		t.Error("a stream is not served")
	}
}

// For any body, decoding gives a request or an error.
func FuzzBody(f *testing.F) {
	for op := range wirepb.Op_name {
		f.Add(uint8(op), []byte{10, 1, 'x'})
	}
	o := newLocal(f).Operations()
	f.Fuzz(func(_ *testing.T, op uint8, b []byte) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // what is decoded is not done
		if c, ok := o.Calls[wirepb.Op(op)]; ok {
			_, _ = c.Do(ctx, wire.Addressee{}, b)
		}
		if l, ok := o.Listings[wirepb.Op(op)]; ok {
			if s, err := l.Open(ctx, wire.Addressee{}, b); err == nil {
				s.Close()
			}
		}
	})
}
