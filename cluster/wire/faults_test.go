package wire

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"divan/cluster/wire/wirepb"
	"divan/storage/fault"
)

// through sends a message over the wire and decodes what comes out into to.
func through(t *rapid.T, m, to Message) {
	b := make([]byte, m.SizeVT())
	if _, err := m.MarshalToSizedBufferVT(b); err != nil {
		t.Fatal(err)
	}
	if err := to.UnmarshalVTUnsafe(b); err != nil {
		t.Fatal(err)
	}
}

func faults() *rapid.Generator[error] {
	return rapid.Custom(func(t *rapid.T) error {
		switch rapid.IntRange(0, 2).Draw(t, "error") {
		case 0:
			return nil
		case 1:
			return &fault.Error{
				Kind: fault.Kind(rapid.IntRange(1, 255).Draw(t, "kind")), Code: rapid.String().Draw(t, "code"),
				Reason: rapid.String().Draw(t, "reason"),
			}
		default:
			return &fault.Error{Kind: fault.Conflict, Reason: "x", Err: errors.New("cause")}
		}
	})
}

func TestFaultsSurvive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		err := faults().Draw(t, "err")
		f := EncodeFault(err)
		if err == nil {
			if f != nil {
				t.Fatal("an error out of nothing")
			}
			return
		}
		var m wirepb.Fault
		through(t, f, &m)
		if got := DecodeFault(&m); !reflect.DeepEqual(got, err) {
			t.Fatalf("got %#v, sent %#v", got, err)
		}
	})
	for _, ended := range []error{context.DeadlineExceeded, context.Canceled} {
		for _, err := range []error{ended, fault.Wrap(fault.Timeout, "reason", ended)} {
			got := DecodeFault(EncodeFault(err))
			if !errors.Is(got, ended) || fault.Reason(got) != fault.Reason(err) || got.Error() != err.Error() {
				t.Fatalf("%v became %v", err, got)
			}
		}
	}
}
