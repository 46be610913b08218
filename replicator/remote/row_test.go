package remote

import (
	"strings"
	"testing"

	"divan/replicator/endpoint"
	"divan/storage/doc"
)

// A sequence becomes a part of checkpoints and of answers to administrators.
func TestSequencesAreJSON(t *testing.T) {
	for value, want := range map[string]endpoint.Seq{
		`"5-x"`: `"5-x"`, `7`: `7`, `[1,"x"]`: `[1,"x"]`, `null`: "", ``: "",
	} {
		if got, valid := seqOf([]byte(value)); got != want || !valid {
			t.Errorf("%s is %q, %v", value, got, valid)
		}
	}
	for _, value := range []string{`abc`, `{]`, `"` + strings.Repeat("x", maxSeq) + `"`} {
		if got, valid := seqOf([]byte(value)); got != "" || valid {
			t.Errorf("%.40s is %q, %v", value, got, valid)
		}
		r := row{id: []byte(`"a"`), changes: []byte(`[]`), seq: []byte(value)}
		if _, ok := r.change(new(endpoint.Change), nil); ok {
			t.Errorf("a row with the sequence %.40s counts", value)
		}
	}
}

// Lengths are what a peer says.
func TestSmall(t *testing.T) {
	of := func(lengths ...int64) *endpoint.Doc {
		d := &endpoint.Doc{}
		for _, n := range lengths {
			d.Atts = append(d.Atts, endpoint.Attachment{Attachment: doc.Attachment{StoredLength: n}})
		}
		return d
	}
	for _, d := range []*endpoint.Doc{of(1<<62, 1<<62, 1<<62, 1<<62), of(-1), of(smallContents, 1)} {
		if isSmall(d) {
			t.Errorf("%+v is small", d.Atts)
		}
	}
	if !isSmall(of(smallContents-1, 1)) {
		t.Error("what is small is not")
	}
}
