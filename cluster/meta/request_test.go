package meta

import (
	"errors"
	"reflect"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"divan/cluster/meta/metapb"
	"divan/storage/fault"
)

func drawRequest(t *rapid.T) *metapb.Request {
	switch rapid.IntRange(1, 4).Draw(t, "question") {
	case 1:
		return &metapb.Request{Question: &metapb.Request_Propose{Propose: encode(drawCommand(t))}}
	case 2:
		return &metapb.Request{Question: &metapb.Request_ReadIndex{ReadIndex: &metapb.Nothing{}}}
	case 3:
		return &metapb.Request{Question: &metapb.Request_LogStats{LogStats: &metapb.Nothing{}}}
	}
	return &metapb.Request{Question: &metapb.Request_Join{Join: &metapb.Join{
		Node: drawNode(t).proto(), Uuid: rapid.String().Draw(t, "uuid"), Fresh: rapid.Bool().Draw(t, "fresh"),
		Forwarded: rapid.Bool().Draw(t, "forwarded"),
	}}}
}

func drawAnswer(t *rapid.T) *metapb.Answer {
	a := &metapb.Answer{
		Outcome: metapb.Answer_Outcome(rapid.IntRange(1, 2).Draw(t, "outcome")),
		Index:   rapid.Uint64().Draw(t, "index"), Term: rapid.Uint64().Draw(t, "term"),
		ContactMs: rapid.Uint64().Draw(t, "contact"), Uuid: rapid.String().Draw(t, "uuid"), GroupId: rapid.String().Draw(t, "group id"),
	}
	if rapid.Bool().Draw(t, "refused") {
		a.Refusal = &metapb.Refusal{
			Kind: rapid.Uint32Range(1, 40).Draw(t, "fault"), Code: rapid.String().Draw(t, "code"), Reason: rapid.String().Draw(t, "reason"),
		}
	}
	if rapid.Bool().Draw(t, "db") {
		a.Database = drawDatabase(t).proto()
	}
	return a
}

func TestRequestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRequest(t)
		if got, err := decodeRequest(encode(r)); err != nil || !proto.Equal(got, r) {
			t.Fatalf("%+v became %+v, %v", r, got, err)
		}
		a := drawAnswer(t)
		if got, err := decodeAnswer(encode(a)); err != nil || !proto.Equal(got, a) {
			t.Fatalf("%+v became %+v, %v", a, got, err)
		}
		n := drawNode(t)
		if got := nodeFrom(n.proto()); got != n {
			t.Fatalf("%+v became %+v", n, got)
		}
	})
}

// A refusal is the same error on the node that asked.
func TestRefusal(t *testing.T) {
	err := &fault.Error{Kind: fault.Exists, Code: "file_exists", Reason: "because"}
	if got := refusalError(refusal(err)); !reflect.DeepEqual(got, err) {
		t.Errorf("%+v became %+v", err, got)
	}
	if got := refusal(errMalformed); got != nil {
		t.Errorf("refused with %+v", got)
	}
	if got := refusalError(refusal(nil)); got != nil {
		t.Errorf("refused with %+v", got)
	}
	if got := refusalError(&metapb.Refusal{Kind: 1 << 8}); fault.KindOf(got) != 255 {
		t.Errorf("kind %d", fault.KindOf(got))
	}
}

func TestMalformedRequests(t *testing.T) {
	join := func(n *metapb.Node) []byte {
		return encode(&metapb.Request{Question: &metapb.Request_Join{Join: &metapb.Join{Node: n}}})
	}
	for name, b := range map[string][]byte{
		"empty":          {},
		"kind":           unknownCommand(),
		"no node":        join(nil),
		"cut":            {1<<3 | 2, 9},
		"node of nobody": join(&metapb.Node{}),
	} {
		if r, err := decodeRequest(b); !errors.Is(err, errMalformed) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	for name, b := range map[string][]byte{
		"empty":      {},
		"no outcome": encode(&metapb.Answer{Index: 7}),
		"outcome":    encode(&metapb.Answer{Outcome: 9}),
		"cut":        {1 << 3},
	} {
		if a, err := decodeAnswer(b); !errors.Is(err, errMalformed) {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
	if _, err := databaseFrom(&metapb.Database{}); !errors.Is(err, errMalformed) { // as an answer may have it
		t.Error(err)
	}
}

func FuzzDecodeRequest(f *testing.F) {
	rapid.Check(f, func(t *rapid.T) {
		f.Add(encode(drawRequest(t)))
		f.Add(encode(drawAnswer(t)))
	})
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := decodeRequest(b); err == nil {
			again, err := decodeRequest(encode(r))
			if err != nil || !proto.Equal(again, r) {
				t.Fatalf("%+v became %+v, %v", r, again, err)
			}
		}
		if a, err := decodeAnswer(b); err == nil {
			again, err := decodeAnswer(encode(a))
			if err != nil || !proto.Equal(again, a) {
				t.Fatalf("%+v became %+v, %v", a, again, err)
			}
			if a.Database != nil {
				_, _ = databaseFrom(a.Database) // may refuse it
			}
		}
	})
}
