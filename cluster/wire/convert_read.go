package wire

import (
	"divan/cluster/wire/wirepb"
	"divan/shard"
)

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

func encodeOpenRevs(req *shard.OpenRevsRequest) *wirepb.OpenRevsRequest {
	return &wirepb.OpenRevsRequest{
		Copy: req.Copy, Id: req.ID, Revs: encodeRevs(req.Revs), All: req.All, Latest: req.Latest,
		WithPath: req.WithPath, HeadOnly: req.HeadOnly, RevsLimit: int64(req.RevsLimit),
	}
}

func decodeOpenRevs(m *wirepb.OpenRevsRequest) shard.OpenRevsRequest {
	return shard.OpenRevsRequest{
		Copy: name(m.Copy), ID: name(m.Id), Revs: decodeRevs(m.Revs), All: m.All, Latest: m.Latest,
		WithPath: m.WithPath, HeadOnly: m.HeadOnly, RevsLimit: int(m.RevsLimit),
	}
}

func encodeRevResults(results []shard.RevResult) *wirepb.RevResults {
	m := &wirepb.RevResults{Results: make([]*wirepb.RevResult, len(results))}
	for i := range results {
		m.Results[i] = &wirepb.RevResult{Rev: encodeRev(results[i].Rev), Doc: encodeDoc(results[i].Doc, nil)}
	}
	return m
}

func decodeRevResults(m *wirepb.RevResults) []shard.RevResult {
	if len(m.Results) == 0 {
		return nil
	}
	out := make([]shard.RevResult, len(m.Results))
	for i, r := range m.Results {
		out[i] = shard.RevResult{Rev: decodeRev(r.Rev), Doc: decodeNewDoc(r.Doc)}
	}
	return out
}

func encodeIDRevs(ids []shard.IDRevs) []*wirepb.IDRevs {
	out := make([]*wirepb.IDRevs, len(ids))
	for i := range ids {
		out[i] = &wirepb.IDRevs{Id: ids[i].ID, Revs: encodeRevs(ids[i].Revs)}
	}
	return out
}

func decodeIDRevs(ms []*wirepb.IDRevs) []shard.IDRevs {
	if len(ms) == 0 {
		return nil
	}
	out := make([]shard.IDRevs, len(ms))
	for i, m := range ms {
		out[i] = shard.IDRevs{ID: name(m.Id), Revs: decodeRevs(m.Revs)}
	}
	return out
}

func encodeMissings(answers []shard.IDMissing) *wirepb.Missings {
	m := &wirepb.Missings{Answers: make([]*wirepb.IDMissing, len(answers))}
	for i := range answers {
		m.Answers[i] = &wirepb.IDMissing{
			Id: answers[i].ID, Missing: encodeRevs(answers[i].Missing),
			PossibleAncestors: encodeRevs(answers[i].PossibleAncestors),
		}
	}
	return m
}

func decodeMissings(m *wirepb.Missings) []shard.IDMissing {
	if len(m.Answers) == 0 {
		return nil
	}
	out := make([]shard.IDMissing, len(m.Answers))
	for i, a := range m.Answers {
		out[i] = shard.IDMissing{
			ID: a.Id, Missing: decodeRevs(a.Missing), PossibleAncestors: decodeRevs(a.PossibleAncestors),
		}
	}
	return out
}

func encodeRows(rows []shard.Row) *wirepb.Rows {
	all := make([]wirepb.Row, len(rows))
	m := &wirepb.Rows{Rows: make([]*wirepb.Row, len(rows))}
	for i := range rows {
		m.Rows[i] = &all[i]
		encodeRow(&rows[i], m.Rows[i])
	}
	return m
}

func decodeRows(m *wirepb.Rows) []shard.Row {
	if len(m.Rows) == 0 {
		return nil
	}
	out, docs := make([]shard.Row, len(m.Rows)), 0
	for _, r := range m.Rows {
		if r.Doc != nil {
			docs++
		}
	}
	arena := make([]shard.Doc, docs)
	for i, r := range m.Rows {
		var d *shard.Doc
		if r.Doc != nil {
			d, arena = &arena[0], arena[1:]
		}
		out[i] = decodeRow(r, d)
	}
	return out
}

func encodePurgeItems(items []shard.PurgeItem) []*wirepb.PurgeItem {
	out := make([]*wirepb.PurgeItem, len(items))
	for i := range items {
		out[i] = &wirepb.PurgeItem{Uuid: encode16(&items[i].UUID), Id: items[i].ID, Revs: encodeRevs(items[i].Revs), Paths: encodePaths(items[i].Paths)}
	}
	return out
}

func decodePurgeItems(ms []*wirepb.PurgeItem) []shard.PurgeItem {
	if len(ms) == 0 {
		return nil
	}
	out := make([]shard.PurgeItem, len(ms))
	for i, m := range ms {
		out[i] = shard.PurgeItem{UUID: decode16(m.Uuid), ID: name(m.Id), Revs: decodeRevs(m.Revs), Paths: decodePaths(m.Paths)}
	}
	return out
}

func encodePurgeResults(results []shard.PurgeResult) *wirepb.PurgeResults {
	m := &wirepb.PurgeResults{Results: make([]*wirepb.PurgeResult, len(results))}
	for i := range results {
		m.Results[i] = &wirepb.PurgeResult{Id: results[i].ID, Purged: encodeRevs(results[i].Purged)}
	}
	return m
}

func decodePurgeResults(m *wirepb.PurgeResults) []shard.PurgeResult {
	if len(m.Results) == 0 {
		return nil
	}
	out := make([]shard.PurgeResult, len(m.Results))
	for i, r := range m.Results {
		out[i] = shard.PurgeResult{ID: r.Id, Purged: decodeRevs(r.Purged)}
	}
	return out
}

func encodePurgeInfos(infos []shard.PurgeInfo) *wirepb.PurgeInfos {
	m := &wirepb.PurgeInfos{Infos: make([]*wirepb.PurgeInfo, len(infos))}
	for i := range infos {
		p := &infos[i]
		m.Infos[i] = &wirepb.PurgeInfo{Seq: p.Seq, Uuid: encode16(&p.UUID), Id: p.ID, Revs: encodeRevs(p.Revs), Paths: encodePaths(p.Paths)}
	}
	return m
}

func decodePurgeInfos(m *wirepb.PurgeInfos) []shard.PurgeInfo {
	if len(m.Infos) == 0 {
		return nil
	}
	out := make([]shard.PurgeInfo, len(m.Infos))
	for i, p := range m.Infos {
		out[i] = shard.PurgeInfo{Seq: p.Seq, UUID: decode16(p.Uuid), ID: p.Id, Revs: decodeRevs(p.Revs), Paths: decodePaths(p.Paths)}
	}
	return out
}

func encodeInfo(i *shard.Info) *wirepb.Info {
	return &wirepb.Info{
		Uuid: encode16(&i.UUID), Live: i.Live, Deleted: i.Deleted, Seq: i.Seq, PurgeSeq: i.PurgeSeq, External: i.External,
		Active: i.Active, File: i.File, Compacting: i.Compacting, PurgeOldest: i.PurgeOldest,
	}
}

func decodeInfo(m *wirepb.Info) shard.Info {
	return shard.Info{
		UUID: decode16(m.Uuid), Live: m.Live, Deleted: m.Deleted, Seq: m.Seq, PurgeSeq: m.PurgeSeq, External: m.External,
		Active: m.Active, File: m.File, Compacting: m.Compacting, PurgeOldest: m.PurgeOldest,
	}
}
