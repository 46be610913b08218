package replica

import (
	"context"
	"time"

	"divan/cluster/wire"
	"divan/cluster/wire/wirepb"
	"divan/shard/search"
	"divan/shard/search/postings"
)

// SearchHead is the metadata that a copy sends before the hits of a full-text query: all of the
// answer but the hits that are in no group.
type SearchHead struct {
	search.Answer
}

// SearchHits is some hits of an answer, in its order.
type SearchHits struct{ Hits []search.Hit }

// SearchRows is an answer of a full-text query.
type SearchRows = Listing[SearchHead, SearchHits]

// Search answers a full-text query.
var Search = declare(Operation[search.Request, SearchRows]{
	Copy: func(q search.Request) string { return q.Copy },
	Run: func(h Admitted, ctx context.Context, q search.Request) (SearchRows, error) {
		a, err := h.Searches.Query(ctx, q)
		if err != nil {
			return SearchRows{}, err
		}
		rest := &searchRest{hits: a.Hits}
		a.Hits = nil
		return SearchRows{SearchHead{*a}, rest}, nil
	},
	Over: listing(wirepb.Op_SEARCH,
		codec[search.Request, *wirepb.SearchRequest]{encodeSearchRequest, decodeSearchRequest},
		codec[SearchHead, *wirepb.SearchHead]{encodeSearchHead, decodeSearchHead},
		batchCodec[SearchHits, *wirepb.SearchHits]{
			encode: func(b *SearchHits, m *wirepb.SearchHits) { m.Hits = refill(m.Hits, b.Hits, encodeHit) },
			decode: func(m *wirepb.SearchHits, b *SearchHits) { b.Hits = appendList(b.Hits, m.Hits, decodeHit) },
			clear:  func(b *SearchHits) { b.Hits = b.Hits[:0] },
			count:  func(b *SearchHits) int { return len(b.Hits) },
		},
		func(q search.Request) int { return q.Limit }),
})

// hitBytes is about how much the hits of a batch take.
const hitBytes = 256 << 10

// searchRest gives hits that were found, in batches.
type searchRest struct{ hits []search.Hit }

// Next implements Stream.
func (s *searchRest) Next(b *SearchHits) (more bool, err error) {
	n := 0
	for size := 0; n < len(s.hits) && size < hitBytes; n++ {
		size += s.hits[n].Size()
	}
	b.Hits = append(b.Hits[:0], s.hits[:n]...)
	s.hits = s.hits[n:]
	return len(s.hits) > 0, nil
}

// Close implements Stream.
func (s *searchRest) Close() { s.hits = nil }

// SizeOfSearch returns about how many bytes an answer holds before its hits are read; whole: all
// hits are among them, because the copy is of this node.
func SizeOfSearch(r *SearchRows) (n int, whole bool) {
	n = r.Head.Size()
	rest, whole := r.Stream.(*searchRest)
	if whole {
		for i := range rest.hits {
			n += rest.hits[i].Size()
		}
	}
	return n, whole
}

func encodeSearchRequest(q *search.Request) *wirepb.SearchRequest {
	m := &wirepb.SearchRequest{
		Copy: q.Copy, Signature: q.Signature, Definition: q.Definition, Design: q.Design, Label: q.Label, Stale: q.Stale,
		Query: q.Query, Partition: q.Partition, Locale: q.Locale, Limit: int64(q.Limit), Counts: q.Counts,
		Drilldown: encodeList(q.Drilldown, func(d *search.Drilldown, m *wirepb.SearchDrilldown) { m.Field, m.Values = d.Field, d.Values }),
		Sort:      encodeList(q.Sort, encodeSort),
		Ranges: encodeList(q.Ranges, func(r *search.FieldRanges, m *wirepb.SearchFieldRanges) {
			m.Field, m.Ranges = r.Field, encodeList(r.Ranges, encodeNumberRange)
		}),
		SomeFields: q.IncludeFields != nil, IncludeFields: q.IncludeFields,
	}
	if q.After != nil {
		m.After = &wirepb.SearchPosition{Order: encodeList(q.After.Order, encodeValue), Id: q.After.ID}
	}
	if g := q.Group; g != nil {
		m.Group = &wirepb.SearchGroup{
			Field: g.Field, Sort: encodeList(g.Sort, encodeSort), Limit: int64(g.Limit), Second: g.Names != nil,
			Names: encodeList(g.Names, func(n *search.GroupName, m *wirepb.SearchGroupName) { m.By, m.Missing = n.By, n.Missing }),
		}
	}
	if h := q.Highlight; h != nil {
		m.Highlight = &wirepb.SearchHighlight{Fields: h.Fields, Before: h.Before, After: h.After, Number: int64(h.Number), Size: int64(h.Size)}
	}
	return m
}

func decodeSearchRequest(m *wirepb.SearchRequest) search.Request {
	q := search.Request{
		Copy: name(m.Copy), Signature: name(m.Signature), Definition: m.Definition, Design: name(m.Design), Label: name(m.Label), Stale: m.Stale,
		Query: m.Query, Partition: m.Partition, Locale: m.Locale, Limit: int(m.Limit), Counts: m.Counts,
		Drilldown: decodeList(m.Drilldown, func(m *wirepb.SearchDrilldown) search.Drilldown {
			return search.Drilldown{Field: m.Field, Values: m.Values}
		}),
		Sort: decodeList(m.Sort, decodeSort),
		Ranges: decodeList(m.Ranges, func(m *wirepb.SearchFieldRanges) search.FieldRanges {
			return search.FieldRanges{Field: m.Field, Ranges: decodeList(m.Ranges, decodeNumberRange)}
		}),
	}
	if m.SomeFields {
		q.IncludeFields = append([]string{}, m.IncludeFields...)
	}
	if m.After != nil {
		q.After = &search.Position{Order: decodeList(m.After.Order, decodeValue), ID: m.After.Id}
	}
	if g := m.Group; g != nil {
		q.Group = &search.Group{Field: g.Field, Sort: decodeList(g.Sort, decodeSort), Limit: int(g.Limit)}
		if g.Second {
			q.Group.Names = append([]search.GroupName{}, decodeList(g.Names, func(m *wirepb.SearchGroupName) search.GroupName {
				return search.GroupName{By: m.By, Missing: m.Missing}
			})...)
		}
	}
	if h := m.Highlight; h != nil {
		q.Highlight = &search.Highlight{Fields: h.Fields, Before: h.Before, After: h.After, Number: int(h.Number), Size: int(h.Size)}
	}
	return q
}

func encodeSort(s *search.Sort, m *wirepb.SearchSort) {
	m.By, m.Field, m.Descending = uint32(s.By), s.Field, s.Descending
	m.LatitudeField, m.Longitude, m.Latitude, m.Miles = s.LatitudeField, s.Longitude, s.Latitude, s.Miles
}

func decodeSort(m *wirepb.SearchSort) search.Sort {
	return search.Sort{
		By: search.SortBy(m.By), Field: m.Field, Descending: m.Descending,
		LatitudeField: m.LatitudeField, Longitude: m.Longitude, Latitude: m.Latitude, Miles: m.Miles,
	}
}

func encodeNumberRange(r *search.NumberRange, m *wirepb.SearchNumberRange) {
	m.Label, m.Lower, m.Upper, m.IncludesLower, m.IncludesUpper = r.Label, r.Lower, r.Upper, r.IncludesLower, r.IncludesUpper
}

func decodeNumberRange(m *wirepb.SearchNumberRange) search.NumberRange {
	return search.NumberRange{Label: m.Label, Lower: m.Lower, Upper: m.Upper, IncludesLower: m.IncludesLower, IncludesUpper: m.IncludesUpper}
}

func encodeValue(v *search.Value, m *wirepb.SearchValue) {
	m.Number, m.Text, m.Kind, m.Missing = v.Number, v.Text, uint32(v.Kind), v.Missing
}

func decodeValue(m *wirepb.SearchValue) search.Value {
	return search.Value{Number: m.Number, Text: m.Text, Kind: search.SortBy(m.Kind), Missing: m.Missing}
}

func encodeHit(h *search.Hit, m *wirepb.SearchHit) {
	m.Order, m.Id = encodeList(h.Order, encodeValue), h.ID
	m.Fields = encodeList(h.Fields, func(f *postings.Stored, m *wirepb.SearchStored) { m.Name, m.Value = f.Name, f.Value })
	m.Highlights = encodeList(h.Highlights, func(h *search.Highlighted, m *wirepb.SearchHighlighted) { m.Field, m.Pieces = h.Field, h.Pieces })
}

func decodeHit(m *wirepb.SearchHit) search.Hit {
	return search.Hit{
		Position: search.Position{Order: decodeList(m.Order, decodeValue), ID: m.Id},
		Fields:   decodeList(m.Fields, func(m *wirepb.SearchStored) postings.Stored { return postings.Stored{Name: m.Name, Value: m.Value} }),
		Highlights: decodeList(m.Highlights, func(m *wirepb.SearchHighlighted) search.Highlighted {
			return search.Highlighted{Field: m.Field, Pieces: m.Pieces}
		}),
	}
}

func encodeSearchHead(h *SearchHead) *wirepb.SearchHead {
	return &wirepb.SearchHead{
		Total: h.Total, Waited: int64(h.Waited),
		Counts: encodeList(h.Counts, func(c *search.FieldCounts, m *wirepb.SearchCounts) {
			m.Known = c.Known
			m.Values = encodeList(c.Values, func(c *search.Count, m *wirepb.SearchCount) { m.Value, m.Count = c.Value, c.Count })
		}),
		Ranges: encodeList(h.Ranges, func(r *search.RangeCounts, m *wirepb.SearchRangeCounts) { m.Counts = *r }),
		Groups: encodeList(h.Groups, func(g *search.GroupHits, m *wirepb.SearchGroupHits) {
			m.By, m.Missing, m.Order, m.Total, m.Hits = g.By, g.Missing, encodeList(g.Order, encodeValue), g.Total, encodeList(g.Hits, encodeHit)
		}),
	}
}

func decodeSearchHead(m *wirepb.SearchHead) SearchHead {
	return SearchHead{search.Answer{
		Total: m.Total, Waited: time.Duration(m.Waited),
		Counts: decodeList(m.Counts, func(m *wirepb.SearchCounts) search.FieldCounts {
			return search.FieldCounts{Known: m.Known, Values: decodeList(m.Values, func(m *wirepb.SearchCount) search.Count {
				return search.Count{Value: m.Value, Count: m.Count}
			})}
		}),
		Ranges: decodeList(m.Ranges, func(m *wirepb.SearchRangeCounts) search.RangeCounts { return m.Counts }),
		Groups: decodeList(m.Groups, func(m *wirepb.SearchGroupHits) search.GroupHits {
			return search.GroupHits{
				GroupName: search.GroupName{By: m.By, Missing: m.Missing}, Order: decodeList(m.Order, decodeValue),
				Total: m.Total, Hits: decodeList(m.Hits, decodeHit),
			}
		}),
	}}
}

// SearchInfoRequest is about a full-text index of a copy.
type SearchInfoRequest struct {
	Copy       string
	Signature  string
	Definition []byte // search.Definition.Text
}

// SearchInfo describes a full-text index of a copy. It makes none.
var SearchInfo = declare(Operation[SearchInfoRequest, search.Info]{
	Copy: func(q SearchInfoRequest) string { return q.Copy },
	Run: func(h Admitted, ctx context.Context, q SearchInfoRequest) (search.Info, error) {
		return h.Searches.Info(ctx, q.Copy, q.Signature, q.Definition)
	},
	Over: unary(wirepb.Op_SEARCH_INFO, wire.ClassRead,
		codec[SearchInfoRequest, *wirepb.SearchInfoRequest]{
			func(q *SearchInfoRequest) *wirepb.SearchInfoRequest {
				return &wirepb.SearchInfoRequest{Copy: q.Copy, Signature: q.Signature, Definition: q.Definition}
			},
			func(m *wirepb.SearchInfoRequest) SearchInfoRequest {
				return SearchInfoRequest{name(m.Copy), name(m.Signature), m.Definition}
			},
		},
		codec[search.Info, *wirepb.SearchInfo]{
			func(i *search.Info) *wirepb.SearchInfo {
				return &wirepb.SearchInfo{
					Exists: i.Exists, Seq: i.Seq, PurgeSeq: i.PurgeSeq, Live: i.Live, Dead: i.Dead, Size: i.Size,
					LeftOut: i.LeftOut, Left: wireLeft(i.Left),
				}
			},
			func(m *wirepb.SearchInfo) search.Info {
				return search.Info{
					Exists: m.Exists, Seq: m.Seq, PurgeSeq: m.PurgeSeq, Live: m.Live, Dead: m.Dead, Size: m.Size,
					LeftOut: m.LeftOut, Left: leftOf(m.Left),
				}
			},
		}),
})
