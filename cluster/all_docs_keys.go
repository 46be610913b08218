package cluster

import (
	"context"
	"slices"
	"strings"

	"divan/cluster/fanout"
	"divan/cluster/replica"
	"divan/cluster/routing"
	"divan/cluster/window"
	"divan/shard"
	"divan/shard/ring"
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
		k.docs = window.New(keyWindow, q.Memory)
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
		size, maxBytes := keyWindow, 0
		if k.q.IncludeDocs {
			size, maxBytes = k.docs.Size(), window.MaxBytes
		}
		k.at = 0
		if err := k.look(k.keys[:min(size, len(k.keys))], maxBytes); err != nil {
			return nil, err
		}
		if k.q.IncludeDocs {
			held, err := k.docs.Hold(len(k.rows), func(i int) int { return k.rows[i].Doc.Size() })
			if err != nil {
				return nil, err
			}
			clear(k.rows[held:])
			k.rows = k.rows[:held]
		}
		k.keys = k.keys[len(k.rows):]
	}
	return &k.rows[k.at], nil
}

func (k *keyed) close() { k.docs.Close() }

// Winners returns a row with its document for each id, like AllDocs with keys. When the
// documents are larger than window.MaxBytes, about, the rows are those of the first ids,
// at least of one.
func (d *listings) Winners(ctx context.Context, ids []string) ([]shard.Row, error) {
	k := keyed{db: d, ctx: ctx, q: DocsQuery{IncludeDocs: true}}
	err := k.look(ids, window.MaxBytes)
	return k.rows, err
}

// look finds the rows of the first of some keys, of as many as maxBytes has space for
// their documents; 0: no bound.
func (k *keyed) look(keys []string, maxBytes int) error {
	k.rows = make([]shard.Row, len(keys))
	held := 0
	regular := make([]int, 0, len(keys)) // places of keys that are ids of regular documents here
	for i, id := range keys {
		if maxBytes > 0 && held >= maxBytes {
			keys = keys[:i]
			break
		}
		switch {
		case id == "" || !k.in.holds(id):
			k.rows[i] = shard.Row{ID: id, Missing: true}
		case strings.HasPrefix(id, "_local/"):
			row, err := k.db.locals.localByID(k.ctx, id, k.q.IncludeDocs)
			if err != nil {
				return err
			}
			k.rows[i] = row
			held += row.Doc.Size()
		default:
			regular = append(regular, i)
		}
	}
	groups := k.db.routing.Group(len(regular), func(i int) string { return keys[regular[i]] })
	routing.InOrder(groups)              // the first key is read
	answered := make([]int, len(groups)) // items of each group
	err := fanout.EachWithin(len(groups), maxBytes, func(g, share int) (bytes int, err error) {
		ids := make([]string, len(groups[g].Items))
		for i, at := range groups[g].Items {
			ids[i] = keys[regular[at]]
		}
		found, err := ask(k.ctx, k.db.replicaSet, groups[g].Route.Near, func(ctx context.Context, rep replica.Copy, t ring.Replica) ([]shard.Row, error) {
			return replica.DocsByID.On(ctx, rep, replica.DocsByIDRequest{
				Copy: t.Name, IDs: ids, ByIDOptions: shard.ByIDOptions{
					IncludeDocs: k.q.IncludeDocs, Conflicts: k.q.Conflicts, MaxBytes: share,
				},
			})
		})
		if err != nil {
			return 0, err
		}
		for i := range found {
			k.rows[regular[groups[g].Items[i]]] = found[i]
			bytes += found[i].Doc.Size()
		}
		answered[g] = len(found)
		return bytes, nil
	})
	if err != nil {
		return err
	}
	end := len(keys)
	for g, n := range answered {
		if n < len(groups[g].Items) {
			end = min(end, regular[groups[g].Items[n]])
		}
	}
	clear(k.rows[end:])
	k.rows = k.rows[:end]
	return nil
}
