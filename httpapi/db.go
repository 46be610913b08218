package httpapi

import (
	"net/http"
	"strconv"
	"strings"

	"divan/cluster"
	"divan/storage/fault"
)

// getDatabase answers GET and HEAD /{db}.
func getDatabase(c *call) error {
	info, err := c.db.Info(c.r.Context())
	if err != nil {
		return err
	}
	var room [512]byte
	return c.sendJSON(http.StatusOK, appendInfo(room[:0], info))
}

// putDatabase answers PUT /{db}. The body is not looked at.
func putDatabase(c *call) error {
	o, err := c.createOptions()
	if err != nil {
		return err
	}
	if err := c.api.deps.Coordinator.CreateDB(c.r.Context(), c.dbName, o); err != nil {
		return err
	}
	c.w.Header()["Location"] = []string{string(appendEscaped([]byte(c.baseURL()+"/"), c.dbName))}
	return c.sendOK(http.StatusCreated)
}

// createOptions reads the parameters of PUT /{db}; they are told to be wrong
// before the name is looked at.
func (c *call) createOptions() (cluster.CreateOptions, error) {
	var o cluster.CreateOptions
	var err error
	if o.N, err = c.positive("n"); err != nil {
		return o, err
	}
	if o.Q, err = c.positive("q"); err != nil {
		return o, err
	}
	if text, ok := c.qs("placement"); ok {
		if !wellFormedPlacement(text) {
			return o, fault.New(fault.BadRequest, "The `placement` value should be in a format `zone:n`.")
		}
		o.Placement = text
	}
	if text, ok := c.qs("engine"); ok && text != "couch" {
		return o, fault.New(fault.BadRequest, "invalid_engine_extension")
	}
	switch text, ok := c.qs("partitioned"); {
	case !ok || text == "false":
	case text != "true":
		return o, fault.New(fault.BadRequest, "Invalid `partitioned` parameter")
	case strings.HasPrefix(c.dbName, "_"):
		return o, fault.New(fault.BadRequest, "Cannot partition a system database")
	default:
		o.Partitioned = true
	}
	return o, nil
}

// positive reads a parameter that is an integer above zero, 0 when absent.
func (c *call) positive(name string) (int, error) {
	text, ok := c.qs(name)
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
func deleteDatabase(c *call) error {
	if _, ok := c.qs("rev"); ok {
		return fault.New(fault.BadRequest, "You tried to DELETE a database with a ?=rev parameter. "+
			"Did you mean to DELETE a document instead?")
	}
	if err := c.api.deps.Coordinator.DeleteDB(c.r.Context(), c.dbName); err != nil {
		return err
	}
	return c.sendOK(http.StatusOK)
}

// ensureFullCommit answers POST /{db}/_ensure_full_commit, whose body is not
// looked at. Replicators compare instance_start_time.
func ensureFullCommit(c *call) error {
	if err := c.requireJSON(); err != nil {
		return err
	}
	start, err := c.db.EnsureFullCommit(c.r.Context())
	if err != nil {
		return err
	}
	return c.sendJSON(http.StatusCreated, []byte(`{"ok":true,"instance_start_time":"`+start+`"}`))
}

// compactDatabase answers POST /{db}/_compact.
func compactDatabase(c *call) error {
	if err := c.requireJSON(); err != nil {
		return err
	}
	if err := c.db.Compact(c.r.Context()); err != nil {
		return err
	}
	return c.sendOK(http.StatusAccepted)
}

// compactViews answers POST /{db}/_compact/{ddoc}. An index has nothing to
// compact: the store reclaims the space of removed rows by itself.
func compactViews(c *call) error {
	if err := c.requireJSON(); err != nil {
		return err
	}
	_, err := c.db.Open(c.r.Context(), cluster.OpenOptions{ID: "_design/" + c.path[2], HeadOnly: true})
	if err != nil {
		return err
	}
	return c.sendOK(http.StatusAccepted)
}

// cleanViews answers POST /{db}/_view_cleanup.
func cleanViews(c *call) error { return c.sendOK(http.StatusAccepted) }

// syncShards answers POST /{db}/_sync_shards.
func syncShards(c *call) error {
	if err := c.db.SyncShards(c.r.Context()); err != nil {
		return err
	}
	return c.sendOK(http.StatusAccepted)
}

// tempView answers any method on /{db}/_temp_view.
func tempView(*call) error {
	return fault.New(fault.Gone, "Temporary views are not supported in CouchDB")
}
