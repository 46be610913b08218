package cluster

import (
	"context"
	"sync/atomic"

	"go.uber.org/zap"

	"divan/cluster/config"
	"divan/cluster/meta"
	"divan/cluster/repair"
	"divan/cluster/routing"
	"divan/shard"
	"divan/shard/ring"
)

// DB is a handle on one database as the metadata described it when the handle
// was made: what can be done with it, each kind by a type of its own. It is safe
// for concurrent use and holds nothing that must be closed; a request takes one
// and keeps it.
type DB struct {
	*replicaSet
	settings
	docReads
	docWrites
	localDocs
	listings
	purges
	attachments
	totals
	maintenance
}

// replicaSet is the copies of one database by the map of one moment: where they are, how
// they are asked, and what they have said of newer maps.
type replicaSet struct {
	covers
	*background
	config    *config.Holder
	log       *zap.Logger
	metaGroup *meta.Meta
	handles   *handles
	meta      *meta.Database
	db        *DB // the handle that this belongs to

	noCopies atomic.Uint64 // how often a node has said that it does not hold its copy
	stale    atomic.Uint64 // how often a copy has refused because it knows a newer map
	newer    atomic.Uint64 // the newest map that a copy has said to know; see renewed
	unheard  atomic.Uint64 // the one that this node was waited for in vain to hear of

	made atomic.Bool // the copies of this node were made, by this map
}

// newDB makes a handle on a database by its metadata.
func newDB(c *Coordinator, m *meta.Database) *DB {
	d := &DB{settings: settings{of: m, metaGroup: c.meta}}
	r := &replicaSet{
		covers:     covers{replicas: c.replicas, routing: routing.NewTable(m, c.node)},
		background: c.background, config: c.config, log: c.log, metaGroup: c.meta, handles: &c.handles, meta: m, db: d,
	}
	design := func(ctx context.Context) { c.design(ctx, d) }
	d.replicaSet = r
	d.docReads = docReads{r, &c.readRepairs}
	d.docWrites = docWrites{r, &c.figures, design}
	d.localDocs = localDocs{r, &d.docWrites}
	d.totals = totals{r}
	d.listings = listings{r, &d.totals, &d.localDocs}
	d.purges = purges{r, design}
	d.attachments = attachments{r, &c.uploads}
	d.maintenance = maintenance{r, &d.totals}
	return d
}

// limits returns what a shard must hold to.
func (d *replicaSet) limits() shard.Limits {
	l := repair.LimitsOf(d.meta)
	if l.Partitioned {
		l.MaxPartitionSize = max(d.config.Load().CouchDB.MaxPartitionSize, 0)
	}
	return l
}

// Ranges returns for each part of the ring the copies that hold its documents,
// that of this node first; the others in the order in which they decide edits.
func (d *replicaSet) Ranges() [][]ring.Replica { return d.routing.Ranges() }

// ShardOf returns the shard that a document belongs to, whether or not there
// is such a document. Nodes lists every node with a copy of that part of the
// ring.
func (d *replicaSet) ShardOf(id string) ring.Shard { return d.routing.ShardOf(id) }
