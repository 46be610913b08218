package wire

import (
	"context"

	"divan/cluster/wire/wirepb"
	"divan/shard"
	"divan/storage/fault"
)

// do does a call and returns its answer.
func (s *Server) do(ctx context.Context, from string, w *whole) (message, error) {
	if w.op == wirepb.Op_ASK {
		return s.ask(ctx, from, w.body)
	}
	if s.copies == nil {
		return nil, fault.New(fault.Unavailable, "This node serves no copies.")
	}
	switch w.op {
	case wirepb.Op_UPDATE, wirepb.Op_PURGE, wirepb.Op_DROP_ATTACHMENTS:
		return s.write(ctx, w)
	case wirepb.Op_OPEN, wirepb.Op_OPEN_REVS, wirepb.Op_OPEN_REVS_MANY, wirepb.Op_LOCAL_GET:
		return s.read(ctx, w)
	case wirepb.Op_MISSING, wirepb.Op_DOCS_BY_ID, wirepb.Op_PURGES, wirepb.Op_POSITION:
		return s.look(ctx, w)
	case wirepb.Op_CREATE, wirepb.Op_DROP, wirepb.Op_INFO, wirepb.Op_PARTITION, wirepb.Op_COMPACT:
		return s.manage(ctx, w)
	default:
		return nil, fault.Newf(fault.Unavailable, "This node does not know the call %d yet.", w.op)
	}
}

// write does the calls that change documents.
func (s *Server) write(ctx context.Context, w *whole) (message, error) {
	switch w.op {
	case wirepb.Op_UPDATE:
		m, err := decode(w.body, &wirepb.UpdateRequest{})
		if err != nil {
			return nil, err
		}
		results, err := s.copies.Update(ctx, decodeUpdate(m))
		return encodeResults(results), err
	case wirepb.Op_PURGE:
		m, err := decode(w.body, &wirepb.PurgeRequest{})
		if err != nil {
			return nil, err
		}
		results, err := s.copies.Purge(ctx, name(m.Copy), decodePurgeItems(m.Items))
		return encodePurgeResults(results), err
	default:
		m, err := decode(w.body, &wirepb.DropAttachmentsRequest{})
		if err != nil {
			return nil, err
		}
		keys := make([][16]byte, len(m.Keys))
		for i, k := range m.Keys {
			keys[i] = decode16(k)
		}
		return &wirepb.Nothing{}, s.copies.DropAttachments(ctx, name(m.Copy), name(m.Id), keys)
	}
}

// read does the calls that read single documents.
func (s *Server) read(ctx context.Context, w *whole) (message, error) {
	switch w.op {
	case wirepb.Op_OPEN:
		m, err := decode(w.body, &wirepb.OpenRequest{})
		if err != nil {
			return nil, err
		}
		d, err := s.copies.Open(ctx, decodeOpen(m))
		if err != nil {
			return nil, err
		}
		return encodeDoc(d, nil), nil
	case wirepb.Op_OPEN_REVS:
		m, err := decode(w.body, &wirepb.OpenRevsRequest{})
		if err != nil {
			return nil, err
		}
		results, err := s.copies.OpenRevs(ctx, decodeOpenRevs(m))
		return encodeRevResults(results), err
	case wirepb.Op_OPEN_REVS_MANY:
		m, err := decode(w.body, &wirepb.OpenRevsList{})
		if err != nil {
			return nil, err
		}
		return s.openMany(ctx, m)
	default:
		m, err := decode(w.body, &wirepb.CopyID{})
		if err != nil {
			return nil, err
		}
		d, err := s.copies.LocalGet(ctx, name(m.Copy), name(m.Id))
		if err != nil {
			return nil, err
		}
		return encodeLocalDoc(d), nil
	}
}

// openMany opens the revisions of several documents; each has an answer or an
// error of its own.
func (s *Server) openMany(ctx context.Context, m *wirepb.OpenRevsList) (message, error) {
	out := &wirepb.RevResultsList{Answers: make([]*wirepb.RevResults, len(m.Requests))}
	for i, r := range m.Requests {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		results, err := s.copies.OpenRevs(ctx, decodeOpenRevs(r))
		out.Answers[i] = encodeRevResults(results)
		out.Answers[i].Fault = encodeFault(err)
	}
	return out, nil
}

// look does the calls that read more than one document, or what copies say of
// themselves all the time.
func (s *Server) look(ctx context.Context, w *whole) (message, error) {
	switch w.op {
	case wirepb.Op_MISSING:
		m, err := decode(w.body, &wirepb.MissingRequest{})
		if err != nil {
			return nil, err
		}
		answers, err := s.copies.Missing(ctx, name(m.Copy), decodeIDRevs(m.Ids))
		return encodeMissings(answers), err
	case wirepb.Op_DOCS_BY_ID:
		m, err := decode(w.body, &wirepb.DocsByIDRequest{})
		if err != nil {
			return nil, err
		}
		rows, err := s.copies.DocsByID(ctx, name(m.Copy), m.Ids, m.IncludeDocs, m.Conflicts)
		return encodeRows(rows), err
	case wirepb.Op_PURGES:
		m, err := decode(w.body, &wirepb.CopySince{})
		if err != nil {
			return nil, err
		}
		infos, err := s.copies.Purges(ctx, name(m.Copy), m.Since)
		return encodePurgeInfos(infos), err
	default:
		m, err := decode(w.body, &wirepb.Copy{})
		if err != nil {
			return nil, err
		}
		uuid, seq, err := s.copies.Position(ctx, name(m.Copy))
		return &wirepb.Position{Uuid: uuid[:], Seq: seq}, err
	}
}

// manage does the calls on whole copies.
func (s *Server) manage(ctx context.Context, w *whole) (message, error) {
	switch w.op {
	case wirepb.Op_CREATE:
		m, err := decode(w.body, &wirepb.CreateRequest{})
		if err != nil {
			return nil, err
		}
		return &wirepb.Nothing{}, s.copies.Create(ctx, name(m.Copy), shard.CreateOptions{Partitioned: m.Partitioned})
	case wirepb.Op_PARTITION:
		m, err := decode(w.body, &wirepb.CopyID{})
		if err != nil {
			return nil, err
		}
		i, err := s.copies.Partition(ctx, name(m.Copy), name(m.Id))
		return &wirepb.PartitionInfo{Live: i.Live, Deleted: i.Deleted, External: i.External, Active: i.Active}, err
	case wirepb.Op_COMPACT:
		m, err := decode(w.body, &wirepb.CompactRequest{})
		if err != nil {
			return nil, err
		}
		return &wirepb.Nothing{}, s.copies.Compact(ctx, name(m.Copy), decodeLimits(m.Limits), name(m.Db))
	default:
		m, err := decode(w.body, &wirepb.Copy{})
		if err != nil {
			return nil, err
		}
		if w.op == wirepb.Op_DROP {
			return &wirepb.Nothing{}, s.copies.Drop(ctx, name(m.Copy))
		}
		i, err := s.copies.Info(ctx, name(m.Copy))
		return encodeInfo(&i), err
	}
}
