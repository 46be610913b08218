package archive

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"divan/storage/fault"
	"divan/storage/format"
)

// chain returns a shard with a base and increments of so many bytes.
func chain(lengths ...uint64) *Shard {
	s := &Shard{Range: Range{10, 20}, Copy: UUID{1}, Totals: format.Counters{Seq: 100, PurgeSeq: 7, PurgeTrimmed: 3}}
	for i, n := range lengths {
		pack := &Object{Name: PackName(UUID{byte(i)})}
		s.Chain = append(s.Chain, Step{Range: s.Range, Refs: []Ref{{pack, KindTable, Extent{Offset: 8, Length: n}}}})
	}
	return s
}

func TestNewBase(t *testing.T) {
	many := make([]uint64, MaxIncrements)
	for _, c := range []struct {
		name   string
		last   *Shard
		change func(l *Lead)
		want   Reason
	}{
		{"goes on", chain(100, 50), func(*Lead) {}, ReasonNone},
		{"nothing yet", nil, func(*Lead) {}, ReasonFirst},
		{"a split", chain(100), func(l *Lead) { l.Range.End = 15 }, ReasonNone},
		{"a merge", chain(100), func(l *Lead) { l.Range.End = 21 }, ReasonRange},
		{"another copy", chain(100), func(l *Lead) { l.Copy = UUID{2} }, ReasonCopy},
		{"another copy that is known", chain(100), func(l *Lead) { l.Copy, l.Known = UUID{2}, &Position{Seq: 5, PurgeSeq: 3} }, ReasonNone},
		{"it is behind what is known", chain(100), func(l *Lead) { l.Copy, l.Known = UUID{2}, &Position{Seq: 101, PurgeSeq: 3} }, ReasonBehind},
		{"its purges are trimmed", chain(100), func(l *Lead) { l.Copy, l.Known = UUID{2}, &Position{Seq: 5, PurgeSeq: 2} }, ReasonPurges},
		{"went back", chain(100), func(l *Lead) { l.Totals.Seq = 99 }, ReasonBehind},
		{"purges went back", chain(100), func(l *Lead) { l.Totals.PurgeSeq = 6 }, ReasonBehind},
		{"trimmed up to the chain", chain(100), func(l *Lead) { l.Totals.PurgeTrimmed, l.Totals.PurgeSeq = 7, 9 }, ReasonNone},
		{"trimmed", chain(100), func(l *Lead) { l.Totals.PurgeTrimmed, l.Totals.PurgeSeq = 8, 9 }, ReasonPurges},
		{"a pack is gone", chain(100, 1), func(l *Lead) { l.Gone = func(n Name) bool { return n == PackName(UUID{1}) } }, ReasonMissing},
		{"half and a byte", chain(100, 25, 26), func(*Lead) {}, ReasonWeight},
		{"an empty base", chain(0, 1), func(*Lead) {}, ReasonWeight},
		{"29 increments", chain(many...), func(*Lead) {}, ReasonNone},
		{"30 increments", chain(append(many, 0)...), func(*Lead) {}, ReasonMany},
	} {
		l := &Lead{Range: Range{10, 20}, Copy: UUID{1}, Totals: format.Counters{Seq: 100, PurgeSeq: 7, PurgeTrimmed: 3}}
		l.Gone = func(Name) bool { return false }
		c.change(l)
		if got := NewBase(c.last, l); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// keptByModel says which of times, which descend, restic keeps: the newest of each of the first
// so many groups, and the oldest when there are fewer.
func keptByModel(times []time.Time, k Keep) []bool {
	kept := make([]bool, len(times))
	for _, rule := range []struct {
		n  int
		of func(n int, t time.Time) string
	}{
		{k.Last, func(n int, _ time.Time) string { return fmt.Sprint(n) }},
		{k.Daily, func(_ int, t time.Time) string { return t.Format("2006-01-02") }},
		{k.Weekly, func(_ int, t time.Time) string { return fmt.Sprint(t.ISOWeek()) }},
		{k.Monthly, func(_ int, t time.Time) string { return t.Format("2006-01") }},
	} {
		seen := map[string]bool{}
		for i, at := range times {
			group := rule.of(i, at)
			if !seen[group] && (rule.n < 0 || len(seen) < rule.n) {
				kept[i], seen[group] = true, true
			}
		}
		if len(times) > 0 && (rule.n < 0 || len(seen) < rule.n) {
			kept[len(times)-1] = true
		}
	}
	return kept
}

func TestKeep(t *testing.T) {
	place := time.FixedZone("east", 5*3600)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(-1, 4)
		k := Keep{n.Draw(t, "last"), n.Draw(t, "daily"), n.Draw(t, "weekly"), n.Draw(t, "monthly")}
		at := rapid.Int64Range(1e9, 2e9).Draw(t, "newest")
		var all []Taken
		var times []time.Time
		for i := range rapid.IntRange(0, 40).Draw(t, "backups") {
			b := Taken{RunID{Seconds: at}, uint64(1000 - i)}
			all, times = append(all, b), append(times, b.ID.Time().In(place))
			at -= rapid.SampledFrom([]int64{60, 3600, 20_000, 86400, 300_000, 2_000_000}).Draw(t, "apart")
		}
		var want []Taken
		for i, kept := range keptByModel(times, k) {
			if !kept && k != (Keep{}) {
				want = append(want, all[i])
			}
		}
		mixed := rapid.Permutation(all).Draw(t, "order")
		if got := k.Drop(mixed, place); !slices.Equal(got, want) {
			t.Fatalf("dropped %v, want %v", got, want)
		}
		if len(all) > 0 && slices.Contains(want, all[0]) {
			t.Fatal("the newest is dropped")
		}
	})
}

// TestKeepWithWrongClocks: the index of the metadata says which is the newest.
func TestKeepWithWrongClocks(t *testing.T) {
	old, newest := Taken{RunID{Seconds: 2e9}, 1}, Taken{RunID{Seconds: 1e9}, 2}
	if got := (Keep{Last: 1}).Drop([]Taken{old, newest}, time.UTC); !slices.Equal(got, []Taken{old}) {
		t.Error(got)
	}
}

func TestNeeded(t *testing.T) {
	key := &Key{1}
	content := NewContentName(key)
	_, _ = content.Write([]byte("an attachment"))
	list := AppendContent(nil, Content{content.Name().ID, 13})
	lists, entries := writePack(t, []item{{Label{Kind: KindContents}, list}}, 9)
	measure := NewMeasure(&bytes.Buffer{})
	_, _ = measure.Write(lists)
	pack := measure.Object(PackName(UUID{0xcc}))

	p := goodPage()
	page, _, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	old := &p.Databases[0].Shards[1]
	refs := slices.Concat(old.Chain[0].Refs, []Ref{{&pack, KindContents, entries[0].Extent}})
	old.Chain = []Step{{Range: old.Chain[0].Range, Refs: refs}}
	name, _, err := p.Encode()
	if err != nil || name == page {
		t.Fatal(name, err)
	}
	metadata := Ref{&Object{Name: PackName(UUID{0xdd})}, KindMetadata, Extent{Offset: 8}}
	h := &Header{Pages: []PageRef{{5, Object{Name: name}}}, Metadata: &metadata}

	n := NewNeeded()
	needed := []Name{name, pack.Name, metadata.Pack.Name, PackName(UUID{0xab, 15: 1}), content.Name()}
	others := []Name{page, PackName(UUID{0xee}), {Class: ClassContent, ID: Sum{9}}, {Class: ClassContent, ID: name.ID}}
	listed := slices.Concat(needed, others)
	if got := n.AddHeader(h); len(got) != 1 || got[0].Name != name {
		t.Fatal(got)
	}
	if got := n.AddHeader(h); len(got) != 0 {
		t.Fatal("a page is wanted twice")
	}
	if got, err := n.Unneeded(listed); err == nil {
		t.Fatal("the page was not read", got)
	}
	want := n.AddPage(name, p)
	if len(want) != 1 {
		t.Fatal(want)
	}
	bad := bytes.Replace(lists, list, make([]byte, len(list)), 1)
	if err := n.AddContents(&want[0], bytes.NewReader(bad)); !fault.Is(err, fault.Corruption) {
		t.Fatal(err)
	}
	if got, err := n.Unneeded(listed); err == nil {
		t.Fatal("the list was not read", got)
	}
	if err := n.AddContents(&want[0], bytes.NewReader(lists)); err != nil {
		t.Fatal(err)
	}
	if got, err := n.Unneeded(listed); err != nil || !slices.Equal(got, others) {
		t.Fatal(got, err)
	}
}
