package replica

import (
	"strings"
	"unsafe"

	"divan/cluster/wire/wirepb"
	"divan/shard"
	"divan/storage/doc"
)

// Conversions between what several operations have in common and its messages.
// What is encoded is only read until it has been sent; what is decoded aliases the
// message's memory, which belongs to it. Names of copies and documents are copied
// on the receiving side, because they outlive the message in caches.

func encodeRev(r doc.Rev) *wirepb.Rev {
	if r.IsZero() {
		return nil
	}
	return &wirepb.Rev{Pos: r.Pos, Id: raw(r.ID)}
}

func decodeRev(m *wirepb.Rev) doc.Rev {
	if m == nil {
		return doc.Rev{}
	}
	return doc.Rev{Pos: m.Pos, ID: text(m.Id)}
}

func encodeIDs(ids []string) [][]byte {
	out := make([][]byte, len(ids))
	for i, id := range ids {
		out[i] = raw(id)
	}
	return out
}

func decodeIDs(ids [][]byte) []string {
	if len(ids) == 0 {
		return nil
	}
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = text(id)
	}
	return out
}

func encodeRevs(revs []doc.Rev) *wirepb.Revs {
	if len(revs) == 0 {
		return nil
	}
	m := &wirepb.Revs{Pos: make([]uint64, len(revs)), Ids: make([][]byte, len(revs))}
	for i, r := range revs {
		m.Pos[i], m.Ids[i] = r.Pos, raw(r.ID)
	}
	return m
}

// appendRevs appends the revisions of a message to dst.
func appendRevs(dst []doc.Rev, m *wirepb.Revs) []doc.Rev {
	if m == nil {
		return dst
	}
	for i := range min(len(m.Pos), len(m.Ids)) {
		dst = append(dst, doc.Rev{Pos: m.Pos[i], ID: text(m.Ids[i])})
	}
	return dst
}

func decodeRevs(m *wirepb.Revs) []doc.Rev {
	if m == nil || len(m.Pos) == 0 {
		return nil
	}
	return appendRevs(make([]doc.Rev, 0, len(m.Pos)), m)
}

func encodePath(p doc.Path) *wirepb.Path {
	if p.Start == 0 && len(p.IDs) == 0 {
		return nil
	}
	return &wirepb.Path{Start: p.Start, Ids: encodeIDs(p.IDs)}
}

func decodePath(m *wirepb.Path) doc.Path {
	if m == nil {
		return doc.Path{}
	}
	return doc.Path{Start: m.Start, IDs: decodeIDs(m.Ids)}
}

func encodePaths(paths []doc.Path) []*wirepb.Path {
	if len(paths) == 0 {
		return nil
	}
	out := make([]*wirepb.Path, len(paths))
	for i := range paths {
		out[i] = &wirepb.Path{Start: paths[i].Start, Ids: encodeIDs(paths[i].IDs)}
	}
	return out
}

func decodePaths(ms []*wirepb.Path) []doc.Path {
	if len(ms) == 0 {
		return nil
	}
	out := make([]doc.Path, len(ms))
	for i, m := range ms {
		out[i] = decodePath(m)
	}
	return out
}

// encode16 leaves zero out.
func encode16(b *[16]byte) []byte {
	if *b == ([16]byte{}) {
		return nil
	}
	return b[:]
}

func decode16(b []byte) (out [16]byte) {
	copy(out[:], b)
	return out
}

// filled makes an empty text nil, as it is where a document has none.
func filled(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return b
}

func encodeAttachment(a *doc.Attachment) *wirepb.Attachment {
	return &wirepb.Attachment{
		Name: a.Name, ContentType: a.ContentType, Revpos: a.RevPos, Digest: encode16(&a.Digest),
		Length: a.Length, StoredLength: a.StoredLength, Gzip: a.Gzip, Key: encode16(&a.Key),
	}
}

func decodeAttachment(m *wirepb.Attachment) doc.Attachment {
	if m == nil {
		return doc.Attachment{}
	}
	return doc.Attachment{
		Name: m.Name, ContentType: m.ContentType, RevPos: m.Revpos, Digest: decode16(m.Digest),
		Length: m.Length, StoredLength: m.StoredLength, Gzip: m.Gzip, Key: decode16(m.Key),
	}
}

func encodeAttachments(atts []doc.Attachment) []*wirepb.Attachment {
	if len(atts) == 0 {
		return nil
	}
	out := make([]*wirepb.Attachment, len(atts))
	for i := range atts {
		out[i] = encodeAttachment(&atts[i])
	}
	return out
}

func decodeAttachments(ms []*wirepb.Attachment) []doc.Attachment {
	if len(ms) == 0 {
		return nil
	}
	out := make([]doc.Attachment, len(ms))
	for i, m := range ms {
		out[i] = decodeAttachment(m)
	}
	return out
}

func encodeLimits(l shard.Limits) *wirepb.Limits {
	if l == (shard.Limits{}) {
		return nil
	}
	return &wirepb.Limits{
		Revs: int64(l.Revs), PurgedInfos: int64(l.PurgedInfos),
		Partitioned: l.Partitioned, MaxPartitionSize: l.MaxPartitionSize,
	}
}

func decodeLimits(m *wirepb.Limits) shard.Limits {
	if m == nil {
		return shard.Limits{}
	}
	return shard.Limits{
		Revs: int(m.Revs), PurgedInfos: int(m.PurgedInfos),
		Partitioned: m.Partitioned, MaxPartitionSize: m.MaxPartitionSize,
	}
}

// encodeDoc fills m, which may be nil; of nothing it makes nothing.
func encodeDoc(d *shard.Doc, m *wirepb.Doc) *wirepb.Doc {
	if d == nil {
		return nil
	}
	if m == nil {
		m = &wirepb.Doc{}
	}
	m.Id, m.Rev, m.Deleted, m.Body = d.ID, encodeRev(d.Rev), d.Deleted, d.Body
	m.Atts, m.Revisions, m.LocalSeq = encodeAttachments(d.Atts), encodePath(d.Revisions), d.LocalSeq
	m.Conflicts, m.DeletedConflicts = encodeRevs(d.Conflicts), encodeRevs(d.DeletedConflicts)
	m.RevsInfo = m.RevsInfo[:0]
	for i := range d.RevsInfo {
		m.RevsInfo = append(m.RevsInfo, &wirepb.RevInfo{Rev: encodeRev(d.RevsInfo[i].Rev), Status: d.RevsInfo[i].Status})
	}
	return m
}

// decodeDoc fills d and returns it; of nothing it makes nothing.
func decodeDoc(m *wirepb.Doc, d *shard.Doc) *shard.Doc {
	if m == nil {
		return nil
	}
	*d = shard.Doc{
		ID: m.Id, Rev: decodeRev(m.Rev), Deleted: m.Deleted, Body: filled(m.Body),
		Atts: decodeAttachments(m.Atts), Revisions: decodePath(m.Revisions), LocalSeq: m.LocalSeq,
		Conflicts: decodeRevs(m.Conflicts), DeletedConflicts: decodeRevs(m.DeletedConflicts),
	}
	if len(m.RevsInfo) > 0 {
		d.RevsInfo = make([]shard.RevInfo, len(m.RevsInfo))
		for i, r := range m.RevsInfo {
			d.RevsInfo[i] = shard.RevInfo{Rev: decodeRev(r.Rev), Status: r.Status}
		}
	}
	return d
}

func decodeNewDoc(m *wirepb.Doc) *shard.Doc {
	if m == nil {
		return nil
	}
	return decodeDoc(m, &shard.Doc{})
}

// grow makes list n long, with what it held before.
func grow[M any](list []*M, n int) []*M {
	list = list[:min(n, cap(list))]
	for len(list) < n {
		list = append(list, nil)
	}
	lacking := 0
	for _, m := range list {
		if m == nil {
			lacking++
		}
	}
	fresh := make([]M, lacking)
	for i := range list {
		if list[i] == nil {
			list[i], fresh = &fresh[0], fresh[1:]
		}
	}
	return list
}

// name is a string that outlives its message.
func name(s string) string { return strings.Clone(s) }

// text is the bytes as a string without a copy; nobody may write to them any
// more.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// raw is the string as bytes without a copy, to be read only.
func raw(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
