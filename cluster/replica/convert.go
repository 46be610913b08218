package replica

import (
	"slices"
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

// encodeRevs fills m, which may be nil; of nothing it makes nothing.
func encodeRevs(revs []doc.Rev, m *wirepb.Revs) *wirepb.Revs {
	if len(revs) == 0 {
		return nil
	}
	if m == nil {
		m = &wirepb.Revs{Pos: make([]uint64, 0, len(revs)), Ids: make([][]byte, 0, len(revs))}
	}
	m.Pos, m.Ids = m.Pos[:0], m.Ids[:0]
	for _, r := range revs {
		m.Pos, m.Ids = append(m.Pos, r.Pos), append(m.Ids, raw(r.ID))
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

// encodePath leaves the path of nothing out.
func encodePath(p doc.Path) *wirepb.Path {
	if p.Start == 0 && len(p.IDs) == 0 {
		return nil
	}
	return &wirepb.Path{Start: p.Start, Ids: encodeIDs(p.IDs)}
}

// fillPath is encodePath in a list, where nothing can be left out.
func fillPath(p *doc.Path, m *wirepb.Path) { m.Start, m.Ids = p.Start, encodeIDs(p.IDs) }

func decodePath(m *wirepb.Path) doc.Path {
	if m == nil {
		return doc.Path{}
	}
	return doc.Path{Start: m.Start, IDs: decodeIDs(m.Ids)}
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

func encodeAttachment(a *doc.Attachment, m *wirepb.Attachment) {
	m.Name, m.ContentType, m.Revpos, m.Digest = a.Name, a.ContentType, a.RevPos, encode16(&a.Digest)
	m.Length, m.StoredLength, m.Gzip, m.Key = a.Length, a.StoredLength, a.Gzip, encode16(&a.Key)
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
	m.Atts, m.Revisions, m.LocalSeq = refill(m.Atts, d.Atts, encodeAttachment), encodePath(d.Revisions), d.LocalSeq
	m.Conflicts, m.DeletedConflicts = encodeRevs(d.Conflicts, m.Conflicts), encodeRevs(d.DeletedConflicts, m.DeletedConflicts)
	m.RevsInfo = refill(m.RevsInfo, d.RevsInfo, func(i *shard.RevInfo, m *wirepb.RevInfo) {
		m.Rev, m.Status = encodeRev(i.Rev), i.Status
	})
	return m
}

// decodeDoc makes nothing of nothing.
func decodeDoc(m *wirepb.Doc) *shard.Doc {
	if m == nil {
		return nil
	}
	d := &shard.Doc{}
	fillDoc(d, m)
	return d
}

func fillDoc(d *shard.Doc, m *wirepb.Doc) {
	*d = shard.Doc{
		ID: m.Id, Rev: decodeRev(m.Rev), Deleted: m.Deleted, Body: filled(m.Body),
		Atts: decodeList(m.Atts, decodeAttachment), Revisions: decodePath(m.Revisions), LocalSeq: m.LocalSeq,
		Conflicts: decodeRevs(m.Conflicts), DeletedConflicts: decodeRevs(m.DeletedConflicts),
		RevsInfo: decodeList(m.RevsInfo, func(m *wirepb.RevInfo) shard.RevInfo {
			return shard.RevInfo{Rev: decodeRev(m.Rev), Status: m.Status}
		}),
	}
}

// space is memory for the documents of a batch of rows, in one piece.
type space []shard.Doc

func spaceFor[R interface{ GetDoc() *wirepb.Doc }](rows []R) space {
	docs := 0
	for _, r := range rows {
		if r.GetDoc() != nil {
			docs++
		}
	}
	return make(space, docs)
}

// decode is decodeDoc of the next row.
func (r *space) decode(m *wirepb.Doc) *shard.Doc {
	if m == nil {
		return nil
	}
	d := &(*r)[0]
	*r = (*r)[1:]
	fillDoc(d, m)
	return d
}

// encodeList turns each of list into a message; of nothing it makes nothing.
func encodeList[T, M any](list []T, encode func(t *T, m *M)) []*M {
	if len(list) == 0 {
		return nil
	}
	return refill(make([]*M, len(list)), list, encode)
}

// refill is encodeList into messages that may have been used before: encode sets every
// field. New ones lie side by side.
func refill[T, M any](into []*M, list []T, encode func(t *T, m *M)) []*M {
	had := min(len(list), cap(into))
	into = slices.Grow(into[:had], len(list)-had)[:len(list)]
	lacking := 0
	for _, m := range into {
		if m == nil {
			lacking++
		}
	}
	fresh := make([]M, lacking)
	for i := range list {
		if into[i] == nil {
			into[i], fresh = &fresh[0], fresh[1:]
		}
		encode(&list[i], into[i])
	}
	return into
}

// decodeList makes nothing of nothing.
func decodeList[M, T any](messages []*M, decode func(m *M) T) []T {
	if len(messages) == 0 {
		return nil
	}
	return appendList(make([]T, 0, len(messages)), messages, decode)
}

// appendList appends what messages say to dst.
func appendList[M, T any](dst []T, messages []*M, decode func(m *M) T) []T {
	dst = slices.Grow(dst, len(messages))
	for _, m := range messages {
		dst = append(dst, decode(m))
	}
	return dst
}

// name is a string that outlives its message.
func name(s string) string { return strings.Clone(s) }

// text is the bytes as a string without a copy; they must not change any more.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// raw is the string as bytes without a copy, to be read only.
func raw(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
