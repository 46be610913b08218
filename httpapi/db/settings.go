package db

import (
	"math"
	"net/http"
	"strconv"

	"divan/cluster/access"
	"divan/httpapi/core"
	"divan/storage/doc"
	"divan/storage/fault"
)

// getSecurity answers GET /{db}/_security.
func getSecurity(c *core.Call) error { return c.Response.SendJSON(http.StatusOK, c.DB.Security()) }

// putSecurity answers PUT /{db}/_security: administrators of the server and of
// the database may (api.md section 20, row 20).
func putSecurity(c *core.Call) error {
	if c.DBName == c.Config.ChttpdAuth.AuthenticationDB && !c.Config.CouchDB.UsersDBSecurityEditable {
		return fault.New(fault.Forbidden, "You can't edit the security object of the user database.")
	}
	body, err := c.Body.ReadJSON()
	if err != nil {
		return err
	}
	err = alter(c, administrators(c), func() error { return c.DB.SetSecurity(c.Request.Context(), body) })
	if err != nil {
		return err
	}
	return c.Response.SendOK(http.StatusOK)
}

// administrators refuses those who may not change settings of the database that
// the call has open then.
func administrators(c *core.Call) func() error {
	return func() error { return c.Rights().May(access.Settings) }
}

// settingTries is how often a setting is changed at most: each time but the
// last, another database had the name by then.
const settingTries = 4

// alter changes a setting of the database when the body of the request has come,
// for which a client may take as long as it likes: meanwhile the client may have
// lost its rights, or another database may have the name, and this node need not
// have heard of that yet. So the change is one of the very database for which
// mayI was asked; if that is gone, and only then is its successor known here,
// all begins again.
func alter(c *core.Call, mayI, change func() error) error {
	for left := settingTries; ; left-- {
		if err := c.OpenDatabase(); err != nil {
			return err
		}
		if err := mayI(); err != nil {
			return err
		}
		if err := change(); left == 1 || !fault.Is(err, fault.NotFound) {
			return err
		}
	}
}

// getRevsLimit answers GET /{db}/_revs_limit.
func getRevsLimit(c *core.Call) error { return sendNumber(c, c.DB.RevsLimit()) }

// getPurgedInfosLimit answers GET /{db}/_purged_infos_limit.
func getPurgedInfosLimit(c *core.Call) error { return sendNumber(c, c.DB.PurgedInfosLimit()) }

func sendNumber(c *core.Call, n int) error {
	return c.Response.SendJSON(http.StatusOK, strconv.AppendInt(nil, int64(n), 10))
}

// putRevsLimit answers PUT /{db}/_revs_limit.
func putRevsLimit(c *core.Call) error {
	n, err := readLimit(c, "`revs_limit` must be a positive integer")
	if err != nil {
		return err
	}
	err = alter(c, administrators(c), func() error { return c.DB.SetRevsLimit(c.Request.Context(), n) })
	if err != nil {
		return err
	}
	return c.Response.SendOK(http.StatusOK)
}

// putPurgedInfosLimit answers PUT /{db}/_purged_infos_limit.
func putPurgedInfosLimit(c *core.Call) error {
	n, err := readLimit(c, "`purged_infos_limit` must be positive integer")
	if err != nil {
		return err
	}
	anybody := func() error { return nil } // who gets here may: it is for administrators of the server
	err = alter(c, anybody, func() error { return c.DB.SetPurgedInfosLimit(c.Request.Context(), n) })
	if err != nil {
		return err
	}
	return c.Response.SendOK(http.StatusOK)
}

// readLimit reads a body that is an integer above zero; refusal is the text
// for any other JSON.
func readLimit(c *core.Call, refusal string) (int, error) {
	value, err := c.Body.ReadValue()
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(string(value))
	if err != nil || n < 1 || n > math.MaxInt32 {
		return 0, fault.New(fault.BadRequest, refusal)
	}
	return n, nil
}

// getShards answers GET /{db}/_shards.
func getShards(c *core.Call) error {
	out := []byte(`{"shards":{`)
	for i, s := range c.DB.Shards() {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(doc.AppendString(out, s.String()), ':')
		out = core.AppendStrings(out, s.Nodes())
	}
	return c.Response.SendJSON(http.StatusOK, append(out, "}}"...))
}

// getShardOf answers GET /{db}/_shards/{docid}; the document need not exist.
func getShardOf(c *core.Call) error {
	s := c.DB.ShardOf(c.Path[2])
	out := doc.AppendString([]byte(`{"range":`), s.String())
	out = core.AppendStrings(append(out, `,"nodes":`...), s.Nodes())
	return c.Response.SendJSON(http.StatusOK, append(out, '}'))
}
