package check

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"divan/storage/format"
	"divan/storage/keyspace"
)

// blockCheck compares the entries of one aggregate and level with what is
// counted. Members come in ascending order; the entries are read alongside.
type blockCheck struct {
	name     string
	problemf func(format string, args ...any)
	it       *pebble.Iterator
	more     bool        // it is at the entry after the current block's
	border   string      // of the current block
	want     format.Sums // what its entry says
	got      format.Sums // what is counted
}

func newBlockCheck(r pebble.Reader, kind, level byte, problemf func(string, ...any)) (*blockCheck, error) {
	it, err := r.NewIter(&pebble.IterOptions{
		LowerBound: keyspace.AppendAgg(nil, kind, level, ""), UpperBound: keyspace.AppendAgg(nil, kind, level+1, ""),
	})
	if err != nil {
		return nil, fmt.Errorf("check aggregates: %w", err)
	}
	b := &blockCheck{name: fmt.Sprintf("aggregate %c, level %d", kind, level), problemf: problemf, it: it}
	b.more = it.First()
	return b, nil
}

// add counts a member. opens says that a block begins at key.
func (b *blockCheck) add(key string, opens bool, sums format.Sums) {
	for b.more && string(keyspace.AggBorder(b.it.Key())) <= key {
		b.next()
	}
	if opens && b.border != key {
		b.problemf("%s: no block begins at %q", b.name, key)
	}
	b.got.Add(sums)
}

// next goes on to the block of the entry at it.
func (b *blockCheck) next() {
	b.compare()
	b.border = string(keyspace.AggBorder(b.it.Key()))
	var err error
	if b.want, err = format.DecodeSums(b.it.Value()); err != nil {
		b.problemf("%s, block %q: %v", b.name, b.border, err)
	}
	b.got = format.Sums{}
	b.more = b.it.Next()
}

func (b *blockCheck) compare() {
	if b.want != b.got {
		b.problemf("%s, block %q: the entry says %+v, the store holds %+v", b.name, b.border, b.want, b.got)
	}
}

// end compares what is left after the last member.
func (b *blockCheck) end() {
	for b.more {
		b.next()
	}
	b.compare()
}

func (b *blockCheck) close() error {
	if err := errors.Join(b.it.Error(), b.it.Close()); err != nil {
		return fmt.Errorf("check aggregates: %w", err)
	}
	return nil
}
