package archive

import "divan/storage/format"

const (
	// MaxIncrements is how many increments a base may have.
	MaxIncrements = 30
	// baseShare divides the bytes of a base: increments together may have a half of them.
	baseShare = 2
)

// Reason is why a range gets a new base.
type Reason string

// The reasons. None is an increment.
const (
	ReasonNone    Reason = ""
	ReasonFirst   Reason = "first"   // the last backup has nothing of the range
	ReasonRange   Reason = "range"   // ranges were merged
	ReasonCopy    Reason = "copy"    // nothing connects the copy that leads with the one before
	ReasonBehind  Reason = "behind"  // the copy went back
	ReasonPurges  Reason = "purges"  // of the purge log something is gone that the chain lacks
	ReasonMissing Reason = "missing" // an object of the chain is gone
	ReasonMany    Reason = "many"    // increments
	ReasonWeight  Reason = "weight"  // of increments
)

// Lead is the copy that leads in a backup.
type Lead struct {
	Range  Range
	Copy   UUID
	Totals format.Counters // durable
	// Known is up to where the last backup has what this copy has, in its own sequences, by a
	// checkpoint or an origin; nil when nothing tells. It is not needed of the copy that led.
	Known *Position
	// Gone reports whether a pack is gone from the target.
	Gone func(pack Name) bool
}

// NewBase decides whether what the last backup has of a range, nil for nothing, is gone on with.
func NewBase(last *Shard, l *Lead) Reason {
	if last == nil {
		return ReasonFirst
	}
	from := last.Position()
	if l.Copy != from.Copy {
		if l.Known == nil {
			return ReasonCopy
		}
		from = *l.Known
	}
	switch {
	case !last.Range.Covers(l.Range):
		return ReasonRange
	case l.Totals.Seq < from.Seq || l.Totals.PurgeSeq < from.PurgeSeq:
		return ReasonBehind
	case l.Totals.PurgeTrimmed > from.PurgeSeq:
		return ReasonPurges
	case last.gone(l.Gone):
		return ReasonMissing
	}
	return last.tooLong()
}

func (s *Shard) gone(gone func(Name) bool) (found bool) {
	for i := range s.Chain {
		eachRef(s.Chain[i].Refs, func(r *Ref) { found = found || gone(r.Pack.Name) })
	}
	return found
}

// tooLong decides by the increments, which all restores read.
func (s *Shard) tooLong() Reason {
	if len(s.Chain) > MaxIncrements {
		return ReasonMany
	}
	base, more := uint64(0), uint64(0)
	eachRef(s.Chain[0].Refs, func(r *Ref) { base += r.Length })
	for i := range s.Chain[1:] {
		eachRef(s.Chain[1+i].Refs, func(r *Ref) { more += r.Length })
	}
	if more > base/baseShare {
		return ReasonWeight
	}
	return ReasonNone
}
