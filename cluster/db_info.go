package cluster

import (
	"context"
	"slices"

	"divan/cluster/quorum"
	"divan/cluster/replica"
	"divan/cluster/sequence"
	"divan/shard"
	"divan/shard/ring"
)

// Info describes a database (api.md section 8.2).
type Info struct {
	Name           string
	InstanceStart  string // unix seconds of the creation; constant over the life of the database
	UpdateSeq      string
	PurgeSeq       string // of the form of UpdateSeq
	DocCount       uint64
	DocDelCount    uint64
	SizeFile       int64 // bytes on disk of one set of copies
	SizeExternal   int64 // bytes
	SizeActive     int64 // bytes
	CompactRunning bool
	Partitioned    bool
	Q, N           int // distinct ranges; most copies of one range
	W, R           int // default quorums
	DiskFormat     int // disk_format_version
}

// diskFormat is the value of CouchDB 3; clients do not look at it.
const diskFormat = 8

// totals adds up the descriptions of the ranges of a database.
type totals struct {
	*replicaSet
}

// Info asks one copy of every range. The counts of the copies are taken one
// after the other, not at one moment.
func (d *totals) Info(ctx context.Context) (*Info, error) {
	picked, err := d.covered()
	if err != nil {
		return nil, err
	}
	infos, err := d.infos(ctx, picked)
	if err != nil {
		return nil, err
	}
	out := &Info{
		Name: d.meta.Name, InstanceStart: instanceStart(d.meta), Partitioned: d.meta.Partitioned,
		DiskFormat: diskFormat, Q: d.meta.Q(), N: d.mostCopies(),
	}
	out.W = quorum.Majority(out.N)
	out.R = out.W
	updates := make([]sequence.Mark, len(picked))
	purges := make([]sequence.Mark, len(picked))
	for i, in := range infos {
		updates[i] = sequence.Mark{Begin: picked[i].Begin, End: picked[i].End, Copy: sequence.PrefixOf(in.UUID), Seq: in.Seq}
		purges[i] = updates[i]
		purges[i].Seq = in.PurgeSeq
		out.DocCount += in.Live
		out.DocDelCount += in.Deleted
		out.SizeFile += in.File
		out.SizeExternal += in.External
		out.SizeActive += in.Active
		out.CompactRunning = out.CompactRunning || in.Compacting
	}
	out.UpdateSeq = sequence.Of(updates).String()
	out.PurgeSeq = sequence.Of(purges).String()
	return out, nil
}

// infos asks copies for their counters, or others of their range when they do not
// answer. Counters are maintained, not counted, so that copies on this node
// are asked one after the other.
func (d *totals) infos(ctx context.Context, picked []ring.Replica) ([]shard.Info, error) {
	out := make([]shard.Info, len(picked))
	err := d.onEach(picked, func(i int) error {
		var err error
		out[i], err = ask(ctx, d.replicaSet, d.routing.SameRange(picked[i]), func(ctx context.Context, rep replica.Copy, t ring.Replica) (shard.Info, error) {
			return replica.Info.On(ctx, rep, t.Name)
		})
		return err
	})
	if err != nil {
		return nil, err // explained by ask
	}
	return out, nil
}

// mostCopies returns the most copies that one part of the ring has.
func (d *totals) mostCopies() int {
	n := 0
	for _, s := range d.routing.Routes {
		n = max(n, slices.Max(s.Nodes())+1)
	}
	return n
}
