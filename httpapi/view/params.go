package view

import (
	"strconv"

	"divan/cluster/docformat"
	"divan/cluster/view"
	"divan/httpapi/core"
	"divan/httpapi/listing"
	shardview "divan/shard/view"
	"divan/storage/doc"
	"divan/storage/fault"
)

// answer is one query, ready to be asked, and how its rows are written.
type answer struct {
	query  view.Query
	style  docformat.Style
	counts bool // total_rows and offset are told
}

// prepare checks the parameters of a query, in CouchDB's order, and makes the
// query of them.
func prepare(c *core.Call, v *view.View, p *listing.Params, inBody bool) (*answer, error) {
	if p.Keys != nil && inBody && !doc.IsArray(p.Keys) {
		return nil, fault.New(fault.BadRequest, "`keys` member must be an array.")
	}
	p.KeysToKey()
	reduces := v.Reduces() && p.Reduce != listing.No
	level, err := groupLevel(p)
	if err == nil {
		err = check(p, v.Reduces(), reduces, level)
	}
	if err == nil {
		err = checkPartition(c, v, p)
	}
	if err != nil {
		return nil, err
	}
	a := &answer{
		style:  docformat.Style{Attachments: p.Attachments, EncodingInfo: p.EncodingInfo},
		counts: !reduces && p.Sorted,
		query: view.Query{
			StartKey: p.StartKey, EndKey: p.EndKey, StartID: p.StartID, EndID: p.EndID, InclusiveEnd: p.InclusiveEnd,
			Descending: p.Descending, HasKeys: p.Keys != nil, Skip: p.Skip, Limit: p.Limit,
			Update: freshness(p.Update), Partition: p.Partition, Reduce: reduces, GroupLevel: level,
			Docs:      view.DocsOptions{Include: p.IncludeDocs, Conflicts: p.Conflicts == listing.Yes, Memory: &c.Memory},
			UpdateSeq: p.UpdateSeq,
		},
	}
	if p.Keys == nil {
		return a, nil
	}
	return a, c.Memory.EachElement(p.Keys, core.KeySpace, func(key []byte) error {
		a.query.Keys = append(a.query.Keys, key)
		return nil
	})
}

// freshness reads the parameter update, which listing has checked.
func freshness(update string) shardview.Update {
	switch update {
	case "false":
		return shardview.UpdateNever
	case "lazy":
		return shardview.UpdateAfter
	default:
		return shardview.UpdateBefore
	}
}

// groupLevel returns by how much rows are grouped; see shardview.Request.
func groupLevel(p *listing.Params) (int, error) {
	switch {
	case p.GroupLevel > 0 && p.Group == listing.No:
		return 0, fault.New(fault.QueryParse, "Can't specify group=false and group_level>0 at the same time")
	case p.GroupLevel >= 0:
		return p.GroupLevel, nil
	case p.Group == listing.Yes:
		return shardview.GroupExact, nil
	default:
		return 0, nil
	}
}

// check refuses parameters that do not go together, or not with the view: reducible
// says that it has a reduce function, reduces that the query is one of its groups.
func check(p *listing.Params, reducible, reduces bool, level int) error {
	refuse := func(reason string) error { return fault.New(fault.QueryParse, reason) }
	switch {
	case p.Reduce == listing.Yes && !reducible:
		return refuse("Reduce is invalid for map-only views.")
	case reduces && level != shardview.GroupExact && p.Keys != nil:
		return refuse("Multi-key fetches for reduce views must use `group=true`")
	case p.Keys != nil && !doc.IsArray(p.Keys):
		return refuse("`keys` must be an array of strings.")
	case p.Keys != nil && (p.StartKey != nil || p.EndKey != nil):
		return refuse("`keys` is incompatible with `key`, `start_key` and `end_key`")
	case !reduces && level != 0:
		return refuse("Invalid use of grouping on a map view.")
	case reduces && p.IncludeDocs:
		return refuse("`include_docs` is invalid for reduce")
	case reduces && p.Conflicts != listing.Unset:
		return refuse("`conflicts` is invalid for reduce views.")
	}
	return nil
}

// checkPartition refuses a partition where the view has none, none where it has
// some, and a limit that is too large.
func checkPartition(c *core.Call, v *view.View, p *listing.Params) error {
	limit := c.Config.Limits.QueryLimit
	switch {
	case v.Partitioned() && !p.HasPartition:
		return fault.New(fault.QueryParse, "`partition` parameter is mandatory for queries to this view.")
	case v.Partitioned():
		limit = c.Config.Limits.PartitionQueryLimit
	case p.HasPartition:
		return fault.New(fault.QueryParse, "`partition` parameter is not supported in this design doc")
	}
	if p.Limit >= 0 && int64(p.Limit) > limit {
		return fault.New(fault.QueryParse, "Limit is too large, must not exceed "+strconv.FormatInt(limit, 10))
	}
	return nil
}
