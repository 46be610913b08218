package node

import (
	"strings"

	"divan/httpapi/core"
)

// callFigures are the numbers of calls of JavaScript, and of passwords that were checked.
func callFigures(a *core.API) []figure {
	s, logins := a.Deps.Scripts.Stats(), a.Deps.Auth.Figures()
	c := s.Calls
	exits := uint64(0)
	if gone := uint64(s.VMs) + s.Broken; s.Started > gone {
		exits = s.Started - gone
	}
	out := []figure{{
		path: []string{"couchdb", "query_server", "vdu_process_time"}, kind: "histogram",
		desc: "duration of validate_doc_update function calls", hist: &a.Stats.Took.Validations, milli: true,
	}}
	for _, row := range []struct {
		path, desc string
		n          uint64
	}{
		{"mrview.emits", "number of invocations of `emit' in map functions in the view server", c.Emits},
		{"mrview.map_doc", "number of documents mapped in the view server", c.Map.Count},
		{"password_hashing_fast", "number of fast password hashes performed", logins.Fast},
		{"password_hashing_slow", "number of slow password hashes performed", logins.Slow},
		{"query_server.calls.ddoc_filter", "number of filter requests", c.Filter.Count},
		{"query_server.calls.ddoc_other", "number of other ddoc requests", c.Other.Count},
		{"query_server.calls.ddoc_vdu", "number of vdu requests", c.Validate.Count},
		{"query_server.calls.map", "number of map_doc requests", c.Map.Count},
		{"query_server.calls.reduce", "number of reduce requests", c.Reduce.Count},
		{"query_server.calls.spawn_proc", "number of spawned query processes", s.Started},
		{"query_server.process_exits", "number of normal OS process exits", exits},
		{
			"query_server.process_prompts", "number of successful OS process prompts",
			c.Map.Count + c.Reduce.Count + c.Filter.Count + c.Validate.Count + c.Other.Count,
		},
		{"query_server.time.ddoc_filter", "accumulated number of microseconds spent processing filter requests", c.Filter.Micros},
		{"query_server.time.ddoc_other", "accumulated number of microseconds spent processing other ddoc requests", c.Other.Micros},
		{"query_server.time.ddoc_vdu", "accumulated number of microseconds spent processing vdu requests", c.Validate.Micros},
		{"query_server.time.map", "accumulated number of microseconds spent processing map_doc requests", c.Map.Micros},
		{"query_server.time.reduce", "accumulated number of microseconds spent processing reduce requests", c.Reduce.Micros},
		{"query_server.vdu_rejects", "number of rejections by validate_doc_update function", c.Refusals},
	} {
		out = append(out, figure{path: append([]string{"couchdb"}, strings.Split(row.path, ".")...), kind: "counter", desc: row.desc, value: float64(row.n)})
	}
	return out
}
