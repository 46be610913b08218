package meta

import (
	"bytes"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"divan/storage/fault"
)

func drawRequest(t *rapid.T) *request {
	r := &request{kind: question(rapid.IntRange(int(askPropose), int(askStats)).Draw(t, "kind"))}
	switch r.kind {
	case askPropose:
		r.command = drawCommand(t).encode()
	case askJoin:
		r.join = joinRequest{
			node: drawNode(t), uuid: rapid.String().Draw(t, "uuid"), fresh: rapid.Bool().Draw(t, "fresh"), relayed: rapid.Bool().Draw(t, "relayed"),
			oldest: rapid.Uint64().Draw(t, "oldest"), newest: rapid.Uint64().Draw(t, "newest"),
		}
	case askIndex, askStats:
	}
	return r
}

func drawAnswer(t *rapid.T) *answer {
	a := &answer{
		outcome: outcome(rapid.IntRange(int(outcomeDone), int(outcomeNotLeader)).Draw(t, "outcome")),
		index:   rapid.Uint64().Draw(t, "index"), term: rapid.Uint64().Draw(t, "term"),
		contactMS: rapid.Uint64().Draw(t, "contact"), uuid: rapid.String().Draw(t, "uuid"), origin: rapid.String().Draw(t, "origin"),
	}
	if rapid.Bool().Draw(t, "refused") {
		a.refusal = &fault.Error{
			Kind: fault.Kind(rapid.IntRange(1, 40).Draw(t, "fault")), Code: rapid.String().Draw(t, "code"), Reason: rapid.String().Draw(t, "reason"),
		}
	}
	if rapid.Bool().Draw(t, "db") {
		a.db = drawDatabase(t)
		if a.db.Security != nil && len(a.db.Security) == 0 {
			a.db.Security = []byte{} // nil and empty differ, two spellings of empty do not
		}
	}
	return a
}

func TestMessageRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRequest(t)
		if got, err := decodeRequest(r.encode()); err != nil || !reflect.DeepEqual(got, r) {
			t.Fatalf("%+v became %+v, %v", r, got, err)
		}
		a := drawAnswer(t)
		if got, err := decodeAnswer(a.encode()); err != nil || !reflect.DeepEqual(got, a) {
			t.Fatalf("%+v became %+v, %v", a, got, err)
		}
	})
}

func TestMalformedMessages(t *testing.T) {
	for name, b := range map[string][]byte{
		"empty":          {},
		"version":        {messageVersion + 1, byte(askIndex)},
		"kind":           {messageVersion, 77},
		"no node":        {messageVersion, byte(askJoin)},
		"cut":            {messageVersion, byte(askPropose), reqCommand<<3 | 2, 9},
		"node of nobody": {messageVersion, byte(askJoin), reqNode<<3 | 2, 0},
	} {
		if r, err := decodeRequest(b); err == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
	for name, b := range map[string][]byte{
		"empty":      {},
		"version":    {messageVersion + 1},
		"no outcome": {messageVersion},
		"outcome":    {messageVersion, ansOutcome << 3, 9},
		"cut":        {messageVersion, ansOutcome << 3},
		"database":   {messageVersion, ansOutcome << 3, 1, ansDB<<3 | 2, 0},
	} {
		if a, err := decodeAnswer(b); err == nil {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

func FuzzDecodeMessage(f *testing.F) {
	rapid.Check(f, func(t *rapid.T) {
		f.Add(drawRequest(t).encode())
		f.Add(drawAnswer(t).encode())
	})
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := decodeRequest(b); err == nil {
			again, err := decodeRequest(r.encode())
			if err != nil || !bytes.Equal(again.encode(), r.encode()) {
				t.Fatalf("%+v became %+v, %v", r, again, err)
			}
		}
		if a, err := decodeAnswer(b); err == nil {
			again, err := decodeAnswer(a.encode())
			if err != nil || !bytes.Equal(again.encode(), a.encode()) {
				t.Fatalf("%+v became %+v, %v", a, again, err)
			}
		}
	})
}
