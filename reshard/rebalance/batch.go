package rebalance

import (
	"slices"
	"strings"
	"unicode/utf8"

	"divan/cluster/meta"
	"divan/reshard/job"
	"divan/shard/ring"
)

// This file decides and does nothing.

// settle notes which moves of the batch have ended, and reports whether any has. jobs are the
// present jobs, by their ids. Moves that were never begun are forgotten: the next plan has them. So
// are moves of databases that are deleted. pointless are the ids of jobs that are to be removed: of
// deleted databases, and those that have failed, which give up the copies they have made.
func (rec *Record) settle(dbs meta.Databases, jobs map[string]*job.Job) (changed bool, pointless []string) {
	var still []Item
	for _, it := range rec.Batch {
		db, ok := dbs.Get(it.Database)
		j := jobs[it.JobID()]
		if !ok || db.Suffix != it.Suffix {
			if j != nil && !it.Lost {
				pointless = append(pointless, it.JobID())
			}
			continue
		}
		switch {
		case !it.Lost && j != nil && !j.Ended():
			still = append(still, it)
		case !it.Lost && j != nil && j.State == job.Failed:
			rec.fail(it, j.Reason)
			pointless = append(pointless, it.JobID())
		case it.arrived(db):
			rec.Moved.add(it.Bytes)
		case it.Lost && it.comes(db):
			still = append(still, it)
		}
	}
	changed = len(still) != len(rec.Batch)
	rec.Batch = still
	return changed, pointless
}

func (rec *Record) fail(it Item, reason string) {
	rec.Failed.add(it.Bytes)
	rec.Avoid = append(rec.Avoid, it.key())
	rec.Failures = append(rec.Failures, Failure{it, cut(reason)})
	if over := len(rec.Failures) - maxFailures; over > 0 {
		rec.Failures = rec.Failures[over:]
	}
}

// shard returns the range of the map that an item is about.
func (i *Item) shard(db *meta.Database) *ring.Shard {
	at := slices.IndexFunc(db.Shards, func(s ring.Shard) bool { return s.Range == i.Range })
	if at < 0 {
		return &ring.Shard{}
	}
	return &db.Shards[at]
}

// arrived reports whether the copy is full where it was to go, and not where it was.
func (i *Item) arrived(db *meta.Database) bool {
	s := i.shard(db)
	c, there := s.CopyOn(i.To)
	return there && c.State == ring.StateFull && !s.On(i.From)
}

// comes reports whether the copy is being filled where it was to go.
func (i *Item) comes(db *meta.Database) bool {
	c, there := i.shard(db).CopyOn(i.To)
	return there && c.State == ring.StateJoining
}

// choose returns the moves of a plan that are begun next, beside those of a batch: at most so many to one node, and
// one of a shard. What does not fit into a record waits.
func choose(p *Plan, batch []Item, toOne int) []Item {
	bytes, to := 0, map[string]int{}
	for i := range batch {
		bytes += batch[i].recordBytes()
		to[batch[i].To]++
	}
	var out []Item
	of := map[ring.Range]map[*meta.Database]bool{}
	for _, m := range p.Moves {
		it := p.item(&m)
		if to[m.To] >= toOne || of[m.Range][m.DB] {
			continue
		}
		if bytes += it.recordBytes(); bytes > maxBatchBytes {
			break
		}
		if of[m.Range] == nil {
			of[m.Range] = map[*meta.Database]bool{}
		}
		of[m.Range][m.DB] = true
		to[m.To]++
		out = append(out, it)
	}
	return out
}

// recordBytes is about what an item takes in a record.
func (i *Item) recordBytes() int {
	return 160 + len(i.Database) + len(i.Suffix) + len(i.From) + len(i.To)
}

// member reports whether a node was a member when it was planned.
func (p *Plan) member(name string) bool {
	return slices.ContainsFunc(p.Nodes, func(n Node) bool { return n.Name == name && n.Member })
}

// key is the key under which a move that has failed is remembered.
func (i *Item) key() string { return strings.TrimPrefix(i.JobID(), "001-")[:keyLength] }

// withoutFailed takes the moves out of a plan that have failed already.
func (rec *Record) withoutFailed(p *Plan) {
	p.Moves = slices.DeleteFunc(p.Moves, func(m Move) bool {
		it := p.item(&m)
		return len(rec.Avoid) > 0 && slices.Contains(rec.Avoid, it.key())
	})
}

func (p *Plan) item(m *Move) Item {
	return Item{m.DB.Name, m.DB.Suffix, m.Range, m.From, m.To, m.Bytes, !p.member(m.From)}
}

// note puts what a plan says into the record.
func (rec *Record) note(p *Plan) {
	rec.Planned = Sum{rec.Moved.Copies + rec.Failed.Copies + len(rec.Batch) + len(p.Moves), rec.Moved.Bytes + rec.Failed.Bytes + p.Bytes}
	for i := range rec.Batch {
		rec.Planned.Bytes += rec.Batch[i].Bytes
	}
	rec.Left, rec.Waiting = nil, p.Waiting
	for _, l := range p.Left {
		why := l.Why.String()
		at := slices.IndexFunc(rec.Left, func(s LeftSum) bool { return s.Why == why })
		if at < 0 {
			at = len(rec.Left)
			rec.Left = append(rec.Left, LeftSum{Why: why})
		}
		rec.Left[at].add(max(l.Bytes, -l.Bytes))
	}
}

// cut shortens a reason to what a record keeps of it.
func cut(reason string) string {
	reason = strings.ToValidUTF8(reason, "�")
	if len(reason) <= maxReasonBytes {
		return reason
	}
	n := maxReasonBytes
	for !utf8.RuneStart(reason[n]) {
		n--
	}
	return reason[:n]
}
