package migrate

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"divan/replicator/endpoint"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// The bar stands at what is done with, not at what the feed has told of.
func TestMeterWaitsForWrites(t *testing.T) {
	m := newDisplay(io.Discard, false, 0).database("pond", 10)
	at := func(what string, want int64) {
		t.Helper()
		if m.done != want {
			t.Errorf("%s: %d of 10, want %d", what, m.done, want)
		}
	}
	m.begin(4)
	at("an earlier run", 4)
	m.told(10, 5) // one of the six is a design document
	at("read", 5)
	m.lacks(5, []shard.IDMissing{{ID: "frog", Missing: make([]doc.Rev, 2)}, {ID: "toad", Missing: make([]doc.Rev, 1)}})
	at("three are there already", 8)
	m.settled("frog")
	at("one of two revisions", 8)
	m.settled("frog")
	at("both", 9)
	m.settled("newt") // of a feed before
	at("another one", 9)
	m.settled("toad")
	at("all", 10)
}

// largeTarget takes documents with large attachments, or refuses them in the
// middle.
type largeTarget struct {
	endpoint.Target
	refuse bool
	during func()
}

// WriteWith implements endpoint.Target.
func (l *largeTarget) WriteWith(ctx context.Context, _ *endpoint.Doc, contents endpoint.Contents) error {
	r, err := contents.Next(ctx)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r)
	l.during()
	if l.refuse {
		return fault.New(fault.Forbidden, "no")
	}
	return errors.Join(err, r.Close())
}

type oneContent struct{ text string }

// Next implements endpoint.Contents.
func (c oneContent) Next(context.Context) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewBufferString(c.text)), nil
}

// Bytes of an attachment count while they go by, and only once; those of a document
// that was refused do not count in the end.
func TestMeterCountsAttachments(t *testing.T) {
	for _, refuse := range []bool{false, true} {
		m := newDisplay(io.Discard, false, 0).database("pond", 1)
		d := &endpoint.Doc{Body: []byte(`{}`), Atts: []endpoint.Attachment{{Attachment: doc.Attachment{Length: 1000}}}}
		target := &watchedTarget{meter: m, refusals: &refusals{}, Target: &largeTarget{refuse: refuse, during: func() {
			if got := m.bytes.Load(); got != 1000 {
				t.Errorf("%d bytes count while they go by", got)
			}
		}}}
		err := target.WriteWith(t.Context(), d, oneContent{string(make([]byte, 1000))})
		want := int64(1002)
		if refuse {
			want = 0
		}
		if got := m.bytes.Load(); got != want || (err != nil) != refuse {
			t.Errorf("refused %v: %d bytes, want %d; %v", refuse, got, want, err)
		}
	}
}
