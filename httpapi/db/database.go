package db

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"divan/cluster"
	"divan/httpapi/core"
	"divan/storage/fault"
)

// getDatabase answers GET and HEAD /{db}.
func getDatabase(c *core.Call) error {
	info, err := c.DB.Info(c.Request.Context())
	if err != nil {
		return err
	}
	c.API.Stats.CountInfo(time.Since(c.Start), c.Start)
	var space [512]byte
	return c.Response.SendJSON(http.StatusOK, AppendInfo(space[:0], info))
}

// putDatabase answers PUT /{db}. The body is not looked at.
func putDatabase(c *core.Call) error {
	o, err := ParseCreate(c.DBName, c.Query)
	if err != nil {
		return err
	}
	if err := c.API.Deps.Coordinator.CreateDB(c.Request.Context(), c.DBName, o); err != nil {
		return err
	}
	c.Response.Header()["Location"] = []string{string(core.AppendEscaped([]byte(c.BaseURL()+"/"), c.DBName))}
	return c.Response.SendOK(http.StatusCreated)
}

// ParseCreate reads the parameters of PUT /{db}; they are told to be wrong
// before the name is looked at.
func ParseCreate(name string, query core.Params) (cluster.CreateOptions, error) {
	var o cluster.CreateOptions
	var err error
	if o.N, err = positive(query, "n"); err != nil {
		return o, err
	}
	if o.Q, err = positive(query, "q"); err != nil {
		return o, err
	}
	if text, ok := query.Value("placement"); ok {
		if !wellFormedPlacement(text) {
			return o, fault.New(fault.BadRequest, "The `placement` value should be in a format `zone:n`.")
		}
		o.Placement = text
	}
	if text, ok := query.Value("engine"); ok && text != "couch" {
		return o, fault.New(fault.BadRequest, "invalid_engine_extension")
	}
	switch text, ok := query.Value("partitioned"); {
	case !ok || text == "false":
	case text != "true":
		return o, fault.New(fault.BadRequest, "Invalid `partitioned` parameter")
	case strings.HasPrefix(name, "_"):
		return o, fault.New(fault.BadRequest, "Cannot partition a system database")
	default:
		o.Partitioned = true
	}
	return o, nil
}

// positive reads a parameter that is an integer above zero, 0 when absent.
func positive(query core.Params, name string) (int, error) {
	text, ok := query.Value(name)
	if !ok {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, fault.Newf(fault.BadRequest, "The `%s` value should be a positive integer.", name)
	}
	return n, nil
}

// wellFormedPlacement checks "zone:n[,zone:n…]".
func wellFormedPlacement(text string) bool {
	for item := range strings.SplitSeq(text, ",") {
		zone, count, ok := strings.Cut(item, ":")
		n, err := strconv.Atoi(count)
		if !ok || zone == "" || err != nil || n < 1 {
			return false
		}
	}
	return true
}

// deleteDatabase answers DELETE /{db}.
func deleteDatabase(c *core.Call) error {
	if _, ok := c.QueryValue("rev"); ok {
		return fault.New(fault.BadRequest, "You tried to DELETE a database with a ?=rev parameter. "+
			"Did you mean to DELETE a document instead?")
	}
	if err := c.API.Deps.Coordinator.DeleteDB(c.Request.Context(), c.DBName); err != nil {
		return err
	}
	return c.Response.SendOK(http.StatusOK)
}

// ensureFullCommit answers POST /{db}/_ensure_full_commit, whose body is not
// looked at. Replicators compare instance_start_time.
func ensureFullCommit(c *core.Call) error {
	if err := c.Body.RequireJSON(); err != nil {
		return err
	}
	start, err := c.DB.EnsureFullCommit(c.Request.Context())
	if err != nil {
		return err
	}
	return c.Response.SendJSON(http.StatusCreated, []byte(`{"ok":true,"instance_start_time":"`+start+`"}`))
}

// compactDatabase answers POST /{db}/_compact.
func compactDatabase(c *core.Call) error {
	if err := c.Body.RequireJSON(); err != nil {
		return err
	}
	if err := c.DB.Compact(c.Request.Context()); err != nil {
		return err
	}
	return c.Response.SendOK(http.StatusAccepted)
}

// syncShards answers POST /{db}/_sync_shards.
func syncShards(c *core.Call) error {
	if err := c.Body.RefuseForms(); err != nil {
		return err
	}
	if err := c.DB.SyncShards(c.Request.Context()); err != nil {
		return err
	}
	return c.Response.SendOK(http.StatusAccepted)
}

// tempView answers any method on /{db}/_temp_view.
func tempView(*core.Call) error {
	return fault.New(fault.Gone, "Temporary views are not supported in CouchDB")
}
