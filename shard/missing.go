package shard

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"divan/storage"
	"divan/storage/doc"
)

// Missing tells for each document which of the named revisions are not here;
// inner revisions and tombstones are (golden bulk/07). The answers are in the
// order of ids. Of most documents it is asked whether the winner is here, or
// they are not here at all: that much the heads tell.
func (l *Local) Missing(ctx context.Context, name string, ids []IDRevs) ([]IDMissing, error) {
	store, err := l.states.pin(ctx, name)
	if err != nil {
		return nil, err
	}
	defer l.states.engine.Release(store)
	m := comparing{ids: ids, out: make([]IDMissing, len(ids))}
	if err := m.fronts(store.Reader()); err != nil {
		return nil, err
	}
	if err := m.records(store.Reader()); err != nil {
		return nil, err
	}
	if m.absent {
		if err := l.states.waitUnsequenced(ctx, name); err != nil {
			return nil, err
		}
	}
	return m.out, l.states.waitDurable(ctx, name, m.newest)
}

// comparing is one Missing.
type comparing struct {
	ids    []IDRevs
	out    []IDMissing
	open   []int  // what the heads do not tell
	newest uint64 // what has to be durable for the answers to stand
	absent bool
}

// fronts answers what the heads tell.
func (m *comparing) fronts(docs *storage.Reader) error {
	order, names := ascending(len(m.ids), func(i int) string { return m.ids[i].ID })
	var h doc.Head
	err := docs.Fronts(names, func(k int, front []byte) error {
		i := order[k]
		m.out[i].ID = m.ids[i].ID
		revs := m.ids[i].Revs
		if front == nil {
			m.absent = true
			m.out[i].Missing = slices.Clone(revs)
			return nil
		}
		if len(revs) > 0 {
			h.Winner.ID = revs[0].ID // not made again when it is that one
		}
		if err := doc.DecodeHead(front, &h); err != nil {
			return err
		}
		m.newest = max(m.newest, h.Seq)
		if slices.ContainsFunc(revs, func(r doc.Rev) bool { return r != h.Winner }) {
			m.open = append(m.open, i)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read documents: %w", err)
	}
	return nil
}

// records answers the rest.
func (m *comparing) records(docs *storage.Reader) error {
	if len(m.open) == 0 {
		return nil
	}
	id := func(k int) string { return m.ids[m.open[k]].ID }
	return eachRecord(docs, len(m.open), id, m.needsHistory, func(k int, rec *doc.Record) {
		if rec == nil {
			rec = &doc.Record{}
			m.absent = true
		}
		i := m.open[k]
		m.newest = max(m.newest, rec.Seq)
		m.out[i].Missing, m.out[i].PossibleAncestors = rec.Tree.Missing(m.ids[i].Revs)
	})
}

// needsHistory reports whether revisions that are asked about may lie in blocks.
func (m *comparing) needsHistory(k int, rec *doc.Record) bool {
	return slices.ContainsFunc(m.ids[m.open[k]].Revs, func(r doc.Rev) bool { return r.Pos < rec.Below.Tip })
}

// eachRecord reads n documents, whose ids id tells, in the order of their ids,
// which takes less than half of reading them one by one; nil for one that is
// not there. whole says for which their whole history is needed.
func eachRecord(
	docs *storage.Reader, n int, id func(i int) string, whole func(i int, rec *doc.Record) bool, fn func(i int, rec *doc.Record),
) error {
	order, names := ascending(n, id)
	err := docs.Records(names, func(k int, rec *doc.Record) bool { return whole(order[k], rec) }, func(k int, rec *doc.Record) { fn(order[k], rec) })
	if err != nil {
		return fmt.Errorf("read documents: %w", err)
	}
	return nil
}

// ascending sorts n ids and tells where each of them comes from.
func ascending(n int, id func(i int) string) (order []int, names []string) {
	order = make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(id(a), id(b)) })
	names = make([]string, n)
	for k, i := range order {
		names[k] = id(i)
	}
	return order, names
}
