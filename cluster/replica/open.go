package replica

import (
	"divan/cluster/wire"
	"divan/cluster/wire/wirepb"
	"divan/shard"
)

// Open reads one revision of a document.
var Open = declare(Operation[shard.OpenRequest, *shard.Doc]{
	Copy:    func(q shard.OpenRequest) string { return q.Copy },
	Counted: true,
	Run:     shards((*shard.Local).Open),
	Over: unary(wirepb.Op_OPEN, wire.ClassRead,
		codec[shard.OpenRequest, *wirepb.OpenRequest]{encodeOpen, decodeOpen},
		codec[*shard.Doc, *wirepb.Doc]{func(d **shard.Doc) *wirepb.Doc { return encodeDoc(*d, nil) }, decodeDoc}),
})

func encodeOpen(req *shard.OpenRequest) *wirepb.OpenRequest {
	return &wirepb.OpenRequest{
		Copy: req.Copy, Id: req.ID, Rev: encodeRev(req.Rev), Latest: req.Latest, Revs: req.Revs, RevsInfo: req.RevsInfo,
		Conflicts: req.Conflicts, DeletedConflicts: req.DeletedConflicts, LocalSeq: req.LocalSeq,
		AllowDeleted: req.AllowDeleted, HeadOnly: req.HeadOnly, RevOnly: req.RevOnly, RevsLimit: int64(req.RevsLimit),
	}
}

func decodeOpen(m *wirepb.OpenRequest) shard.OpenRequest {
	return shard.OpenRequest{
		Copy: name(m.Copy), ID: name(m.Id), Rev: decodeRev(m.Rev), Latest: m.Latest, Revs: m.Revs, RevsInfo: m.RevsInfo,
		Conflicts: m.Conflicts, DeletedConflicts: m.DeletedConflicts, LocalSeq: m.LocalSeq,
		AllowDeleted: m.AllowDeleted, HeadOnly: m.HeadOnly, RevOnly: m.RevOnly, RevsLimit: int(m.RevsLimit),
	}
}
