package archive

import (
	"cmp"
	"slices"
	"time"
)

// Keep says which backups are kept, by the rules of restic: of each of the last so many days
// (weeks, months) with a backup the newest. Numbers below zero are without end. When a number is
// not used up the oldest backup is kept as well.
type Keep struct {
	Last    int `json:"last,omitempty"`
	Daily   int `json:"daily,omitempty"`
	Weekly  int `json:"weekly,omitempty"` // ISO 8601
	Monthly int `json:"monthly,omitempty"`
}

// Taken is a backup as retention sees it.
type Taken struct {
	ID    RunID
	Index uint64 // Header.Index
}

// period counts down one rule.
type period struct {
	left int
	of   func(t time.Time, n int) int // a number that is another one in another period
	last int                          // the period of the newest backup that was kept for it
}

// keeps reports whether the rule keeps a backup, which is older than all before.
func (p *period) keeps(t time.Time, n int, oldest bool) bool {
	at := p.of(t, n)
	if p.left == 0 || at == p.last && !oldest {
		return false
	}
	p.last = at
	p.left--
	return true
}

// Drop returns the backups that are not kept, the newest first, by the calendar of a place. No
// rule at all keeps everything.
func (k Keep) Drop(all []Taken, place *time.Location) []Taken {
	if k == (Keep{}) {
		return nil
	}
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b Taken) int {
		return cmp.Or(cmp.Compare(b.Index, a.Index), cmp.Compare(b.ID.Seconds, a.ID.Seconds), slices.Compare(b.ID.Nonce[:], a.ID.Nonce[:]))
	})
	periods := []period{
		{left: k.Last, last: -1, of: func(_ time.Time, n int) int { return n }},
		{left: k.Daily, last: -1, of: func(t time.Time, _ int) int { return t.Year()*1000 + t.YearDay() }},
		{left: k.Weekly, last: -1, of: func(t time.Time, _ int) int { year, week := t.ISOWeek(); return year*100 + week }},
		{left: k.Monthly, last: -1, of: func(t time.Time, _ int) int { return t.Year()*100 + int(t.Month()) }},
	}
	var dropped []Taken
	for n, b := range all {
		kept := false
		for i := range periods {
			if periods[i].keeps(b.ID.Time().In(place), n, n == len(all)-1) {
				kept = true
			}
		}
		if !kept {
			dropped = append(dropped, b)
		}
	}
	return dropped
}
