package server

import (
	"net/http"
	"time"

	"divan/cluster/meta"
	"divan/httpapi/core"
	"divan/storage/doc"
)

// getUp answers GET /_up: 404 while a load balancer must not send requests
// here.
func getUp(c *core.Call) error {
	switch mode := c.Config.CouchDB.MaintenanceMode; {
	case c.API.Deps.Meta.Removed():
		return c.Response.SendJSON(http.StatusNotFound, []byte(`{"status":"removed","reason":"`+meta.TextRemoved+`"}`))
	case mode == "true":
		return c.Response.SendJSON(http.StatusNotFound, []byte(`{"status":"maintenance_mode"}`))
	case mode != "":
		return c.Response.SendJSON(http.StatusNotFound, []byte(`{"status":"nolb"}`))
	case c.API.IsStopped():
		return c.Response.SendJSON(http.StatusNotFound, []byte(`{"status":"stopping"}`))
	}
	seeding := core.SeedStatus{Joined: true}
	if c.API.Deps.Cluster != nil {
		seeding = c.API.Deps.Cluster.Seeding()
	}
	status, word := http.StatusOK, "ok"
	if !seeding.Joined {
		status, word = http.StatusNotFound, "seeding"
	}
	out := append([]byte(`{"status":"`+word+`","seeds":`), '{')
	for i, s := range seeding.Seeds {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendJSON(&s, append(doc.AppendString(out, s.Name), ':'))
	}
	return c.Response.SendJSON(status, append(out, "}}"...))
}

// appendJSON appends a node of the seed list: the members that it has in
// CouchDB, where the system databases of a seed are copied one by one.
func appendJSON(s *core.Seed, dst []byte) []byte {
	if s.Asked.IsZero() {
		return append(dst, "{}"...)
	}
	dst = append(dst, `{"timestamp":"`...)
	dst = s.Asked.UTC().AppendFormat(dst, time.RFC3339Nano)
	dst = doc.AppendString(append(dst, `","last_replication_status":`...), s.Answer)
	if s.Answer == "ok" {
		dst = append(dst, `,"pending_updates":{"_nodes":0,"_dbs":0,"_users":0}`...)
	}
	return append(dst, '}')
}
