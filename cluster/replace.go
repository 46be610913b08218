package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"divan/cluster/fanout"
	"divan/cluster/repair"
	"divan/storage/fault"
)

// replaceLimit bounds how long the other nodes may take to tell what their
// copies are.
const replaceLimit = time.Minute

// ReplaceNode gives all copies of a node to a member, and takes the first one
// out of the cluster. The copies there are new and are filled from those of the
// other nodes. So unless force is set, it is refused as long as some range has
// no copy on another member that is known to hold what it should: what only the
// old node has would be given up. That is fault.Conflict; the other errors are
// those of meta.ReplaceNode.
//
// Two nodes that hold each other's only other copies could both be found
// dispensable. Through this node they are therefore replaced one after the
// other; two administrators who do that through two nodes in the same moment
// are not kept apart.
func (c *Coordinator) ReplaceNode(ctx context.Context, old, by string, force bool) error {
	select {
	case c.replacing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-c.replacing }()
	if !force && old != by {
		if err := c.dispensable(ctx, old); err != nil {
			return err
		}
	}
	return c.meta.ReplaceNode(ctx, old, by)
}

// dispensable refuses a node that may hold the only complete copy of a range.
func (c *Coordinator) dispensable(ctx context.Context, old string) error {
	if err := c.meta.CatchUp(ctx); err != nil {
		return err
	}
	w := c.only(old)
	own, err := repair.Complete(c.local, w.asks[c.node])
	if err != nil {
		return err
	}
	delete(w.asks, c.node)
	w.found(own)
	silent := w.ask(ctx, c)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return w.refusal(old, silent)
}

// widow is the copies of a node that is to go.
type widow struct {
	lacking map[string]string   // those without another complete copy, as far as known, and their databases
	asks    map[string][]string // by member: those that it has as well
}

// only returns the copies of a node, and who has them too. A node that is no
// member any more does not count: it is asked for nothing.
func (c *Coordinator) only(old string) *widow {
	w := &widow{lacking: make(map[string]string), asks: make(map[string][]string)}
	for db := range c.meta.Databases().All() {
		for i := range db.Shards {
			s := &db.Shards[i]
			if !s.On(old) {
				continue
			}
			name := db.CopyName(s.Range)
			w.lacking[name] = db.Name
			for _, node := range s.Nodes() {
				if _, member := c.meta.Node(node); member && node != old {
					w.asks[node] = append(w.asks[node], name)
				}
			}
		}
	}
	return w
}

// found notes that there are other complete copies.
func (w *widow) found(copies []string) {
	for _, name := range copies {
		delete(w.lacking, name)
	}
}

// ask asks the other nodes about what is still lacking, all at once, and
// returns which of them did not tell.
func (w *widow) ask(ctx context.Context, c *Coordinator) (silent []string) {
	ctx, cancel := context.WithTimeout(ctx, replaceLimit)
	defer cancel()
	var nodes []string
	for node, copies := range w.asks {
		w.asks[node] = slices.DeleteFunc(copies, func(name string) bool { return w.lacking[name] == "" })
		if len(w.asks[node]) > 0 {
			nodes = append(nodes, node)
		}
	}
	var mu sync.Mutex                               // guards w.lacking and silent
	_ = fanout.Each(len(nodes), func(i int) error { // those that fail are in silent
		there, err := c.completeOn(ctx, nodes[i], w.asks[nodes[i]])
		mu.Lock()
		defer mu.Unlock()
		w.found(there)
		if err != nil {
			c.log.Warn("node does not tell which copies are complete", zap.String("node", nodes[i]), zap.Error(err))
			silent = append(silent, nodes[i])
		}
		return nil
	})
	slices.Sort(silent)
	return silent
}

func (c *Coordinator) completeOn(ctx context.Context, node string, copies []string) ([]string, error) {
	if c.repair == nil {
		return nil, fanout.NodeDown(node)
	}
	return c.repair.Complete(ctx, node, copies)
}

// refusal says what would be given up, if anything.
func (w *widow) refusal(old string, silent []string) error {
	if len(w.lacking) == 0 {
		return nil
	}
	dbs := make(map[string]struct{})
	first := ""
	for _, db := range w.lacking {
		dbs[db] = struct{}{}
		if first == "" || db < first {
			first = db
		}
	}
	what := fmt.Sprintf("database %q", first)
	if len(dbs) > 1 {
		what = fmt.Sprintf("%d databases, the first is %q", len(dbs), first)
	}
	if len(silent) > 0 {
		what += "; no answer from " + strings.Join(silent, ", ")
	}
	return fault.Newf(fault.Conflict, "No other node than %s is known to have a complete copy of %s. "+
		"\"force\": true in the body gives up what only %s has.", old, what, old)
}
