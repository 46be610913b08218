package search

import (
	"cmp"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// checkParts compares what a request may ask for beside hits to what a look at the documents
// that match finds.
func checkParts(r *rapid.T, n *world, req Request, matching []string) {
	word := rapid.SampledFrom(append([]string{"none"}, vocabulary[:]...))
	if rapid.Bool().Draw(r, "drill down") {
		d := Drilldown{Field: "tag", Values: rapid.SliceOfN(word, 0, 3).Draw(r, "values")}
		req.Drilldown = []Drilldown{d}
		matching = slices.DeleteFunc(slices.Clone(matching), func(id string) bool {
			tags := n.docs[id].Tags
			return len(tags) == 0 || len(d.Values) > 0 && !slices.ContainsFunc(tags, func(tag string) bool { return slices.Contains(d.Values, tag) })
		})
	}
	if rapid.Bool().Draw(r, "partition") {
		req.Partition = rapid.SampledFrom([]string{"p0", "p1", "p", "p1:d1", "q"}).Draw(r, "name")
		matching = slices.DeleteFunc(slices.Clone(matching), func(id string) bool { return !strings.HasPrefix(id, req.Partition+":") })
	}
	req.Counts = []string{"tag", "none"}
	req.Ranges = []FieldRanges{{"n", []NumberRange{exactly(0), {"", -2, 3, true, false}, {"", math.Inf(-1), math.Inf(1), false, false}}}, {"lon", []NumberRange{exactly(0)}}}
	req.IncludeFields = rapid.SampledFrom([][]string{nil, {}, {"t"}, {"none"}}).Draw(r, "fields")
	a, err := n.indexes.Query(n.t.Context(), req)
	if err != nil {
		r.Fatal(err)
	}
	got := []string{}
	for _, h := range a.Hits {
		got = append(got, h.ID)
		if want := req.IncludeFields == nil || slices.Contains(req.IncludeFields, "t"); (len(h.Fields) == 1) != want {
			r.Fatalf("%v of %v", h.Fields, req.IncludeFields)
		}
	}
	if slices.Sort(got); !slices.Equal(got, matching) || a.Total != uint64(len(matching)) {
		r.Fatalf("%s with %v, %q finds %v (%d) in place of %v", req.Query, req.Drilldown, req.Partition, got, a.Total, matching)
	}
	counts, ranges := map[string]uint64{}, []RangeCounts{make(RangeCounts, 3), {0}}
	for _, id := range matching {
		c := n.docs[id]
		for _, tag := range slices.Compact(slices.Sorted(slices.Values(c.Tags))) {
			counts[tag]++
		}
		for i := range req.Ranges[0].Ranges {
			if slices.ContainsFunc(c.Numbers, req.Ranges[0].Ranges[i].holds) {
				ranges[0][i]++
			}
		}
	}
	var want []Count
	for _, tag := range slices.Sorted(maps.Keys(counts)) {
		want = append(want, Count{tag, counts[tag]})
	}
	if !slices.Equal(a.Counts[0].Values, want) || a.Counts[1].Known || len(a.Counts[1].Values) > 0 || len(want) > 0 && !a.Counts[0].Known {
		r.Fatalf("counts %v in place of %v", a.Counts, want)
	}
	if !reflect.DeepEqual(a.Ranges, ranges) {
		r.Fatalf("ranges %v in place of %v", a.Ranges, ranges)
	}
	checkGroups(r, n, req, matching)
}

// checkGroups compares both passes of a request in groups.
func checkGroups(r *rapid.T, n *world, req Request, matching []string) {
	req.Limit = rapid.IntRange(0, 3).Draw(r, "limit")
	sort := rapid.SampledFrom([][]Sort{{{By: ByID}}, {{By: ByNumber, Field: "n", Descending: true}}, {{By: ByString, Field: "tag", Descending: true}}}).Draw(r, "sort")
	req.Sort = sort
	req.Group = &Group{Field: "tag", Sort: sort, Limit: rapid.IntRange(1, 5).Draw(r, "groups")}
	members := map[string][]string{} // in their order
	for _, id := range slices.SortedFunc(slices.Values(matching), func(a, b string) int { return n.compare(&req, a, b) }) {
		c := n.docs[id]
		members[greatest(c.Tags)] = append(members[greatest(c.Tags)], id)
	}
	names := slices.SortedFunc(maps.Keys(members), func(a, b string) int {
		x, y := n.docs[members[a][0]], n.docs[members[b][0]]
		return cmp.Or(compareContents(sort, &x, &y), strings.Compare(a, b)) // the empty one first
	})
	a, err := n.indexes.Query(n.t.Context(), req)
	if err != nil {
		r.Fatal(err)
	}
	var got []string
	req.Group.Names = []GroupName{{By: "unknown"}}
	for i, g := range a.Groups {
		if g.Missing != (g.By == "") || i > 0 && CompareGroups(sort, &a.Groups[i-1], &g) >= 0 {
			r.Fatalf("groups %v", a.Groups)
		}
		got = append(got, g.By)
		req.Group.Names = append(req.Group.Names, g.GroupName)
	}
	if !slices.Equal(got, names[:min(len(names), req.Group.Limit)]) {
		r.Fatalf("groups %q in place of %q", got, names)
	}
	if a, err = n.indexes.Query(n.t.Context(), req); err != nil || len(a.Groups) != len(req.Group.Names) {
		r.Fatal(err, a)
	}
	for i, g := range a.Groups {
		want := members[g.By]
		if g.GroupName != req.Group.Names[i] || g.Total != uint64(len(want)) {
			r.Fatalf("group %v of %d, %d", g.GroupName, g.Total, len(want))
		}
		var hits []string
		for _, h := range g.Hits {
			hits = append(hits, h.ID)
		}
		if !slices.Equal(hits, want[:min(len(want), req.Limit)]) {
			r.Fatalf("group %v has %v of %v", g.GroupName, hits, want)
		}
	}
}

// distance is that from a place, by the angle between two vectors.
func (c content) distance(s *Sort) float64 {
	const radius = 6378.137
	if len(c.Place) == 0 {
		return math.Pi * radius
	}
	latitude := 0.0
	if len(c.Place) > 1 {
		latitude = c.Place[1]
	}
	vector := func(lon, lat float64) [3]float64 {
		lon, lat = lon*math.Pi/180, lat*math.Pi/180
		return [3]float64{math.Cos(lat) * math.Cos(lon), math.Cos(lat) * math.Sin(lon), math.Sin(lat)}
	}
	a, b := vector(s.Longitude, s.Latitude), vector(c.Place[0], latitude)
	km := radius * math.Acos(a[0]*b[0]+a[1]*b[1]+a[2]*b[2])
	return math.Round(km*1e6) / 1e6
}
