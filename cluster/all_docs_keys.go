package cluster

import (
	"context"
	"slices"
	"strings"

	"divan/cluster/fanout"
	"divan/cluster/replica"
	"divan/cluster/window"
	"divan/shard"
)

// keyWindow is how many keys are looked up at a time, which bounds what is
// held of a listing by keys. With documents there may be fewer: see Window.
const keyWindow = 512

// keyed is the rows of a listing by keys, in the order of the request.
type keyed struct {
	db   *listings
	ctx  context.Context // of the request, like the whole listing
	q    DocsQuery
	in   interval
	keys []string // not looked up yet
	rows []shard.Row
	at   int
	docs window.Window // counts with IncludeDocs
}

// newKeyed prepares the listing: the order, the keys of other kinds of
// documents that _design_docs and _local_docs pass over, and as many keys as
// skip and limit leave.
func newKeyed(ctx context.Context, d *listings, q DocsQuery) *keyed {
	k := &keyed{db: d, ctx: ctx, q: q, keys: q.Keys, at: -1}
	if q.IncludeDocs {
		k.docs = window.New(d.config.Load().CouchDB.MaxDocumentSize, keyWindow, q.Memory)
	}
	if q.Namespace != AllDocs {
		space := spaceOf(&DocsQuery{Namespace: q.Namespace})
		k.keys = slices.DeleteFunc(slices.Clone(k.keys), func(id string) bool { return !space.holds(id) })
	}
	k.in = interval{}
	if q.Partition != "" {
		k.in = spaceOf(&q)
	}
	if q.Descending {
		k.keys = slices.Clone(k.keys)
		slices.Reverse(k.keys)
	}
	k.keys = k.keys[min(max(q.Skip, 0), len(k.keys)):]
	if q.Limit >= 0 && q.Limit < len(k.keys) {
		k.keys = k.keys[:q.Limit]
	}
	return k
}

func (k *keyed) next() (*shard.Row, error) {
	if k.at++; k.at >= len(k.rows) {
		if len(k.keys) == 0 {
			return nil, nil
		}
		size := keyWindow
		if k.q.IncludeDocs {
			size = k.docs.Size()
		}
		window := k.keys[:min(size, len(k.keys))]
		k.keys = k.keys[len(window):]
		k.at = 0
		if err := k.look(window); err != nil {
			return nil, err
		}
		if k.q.IncludeDocs {
			if err := k.measure(); err != nil {
				return nil, err
			}
		}
	}
	return &k.rows[k.at], nil
}

// measure goes by the documents that were read for how many are read next.
func (k *keyed) measure() error {
	bytes := 0
	for i := range k.rows {
		bytes += k.rows[i].Doc.Size()
	}
	return k.docs.Read(len(k.rows), bytes)
}

func (k *keyed) close() { k.docs.Close() }

// Winners returns a row with its document for each id, like AllDocs with keys.
func (d *listings) Winners(ctx context.Context, ids []string) ([]shard.Row, error) {
	k := keyed{db: d, ctx: ctx, q: DocsQuery{IncludeDocs: true}}
	err := k.look(ids)
	return k.rows, err
}

// look finds the rows of some keys.
func (k *keyed) look(keys []string) error {
	k.rows = make([]shard.Row, len(keys))
	regular := make([]int, 0, len(keys)) // places of keys that are ids of regular documents here
	for i, id := range keys {
		switch {
		case id == "" || !k.in.holds(id):
			k.rows[i] = shard.Row{ID: id, Missing: true}
		case strings.HasPrefix(id, "_local/"):
			row, err := k.db.locals.localByID(k.ctx, id, k.q.IncludeDocs)
			if err != nil {
				return err
			}
			k.rows[i] = row
		default:
			regular = append(regular, i)
		}
	}
	groups := k.db.routing.Group(len(regular), func(i int) string { return keys[regular[i]] })
	return fanout.Each(len(groups), func(g int) error {
		ids := make([]string, len(groups[g].Items))
		for i, at := range groups[g].Items {
			ids[i] = keys[regular[at]]
		}
		found, err := ask(k.ctx, k.db.replicaSet, groups[g].Route.Near, func(ctx context.Context, rep replica.Copy, t fanout.Target) ([]shard.Row, error) {
			return replica.DocsByID.On(ctx, rep, replica.DocsByIDRequest{
				Copy: t.Name, IDs: ids, IncludeDocs: k.q.IncludeDocs, Conflicts: k.q.Conflicts,
			})
		})
		if err != nil {
			return err
		}
		for i, at := range groups[g].Items {
			k.rows[regular[at]] = found[i]
		}
		return nil
	})
}
