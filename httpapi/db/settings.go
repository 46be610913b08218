package db

import (
	"net/http"
	"strconv"

	"divan/cluster/access"
	"divan/cluster/meta/dbsetting"
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

// numberRoutes returns the endpoints of the settings of package dbsetting. Those of a database's
// own administrators are read by its members; the others are for administrators of the server.
func numberRoutes() (out []core.Route) {
	own := map[dbsetting.Setting]bool{dbsetting.RevsLimit: true}
	for _, s := range dbsetting.All() {
		get := core.Route{Table: core.DBTable, Path: "/" + s.Path(), Allow: "GET,PUT", Methods: core.Methods{Get: getNumber(s)}}
		put := core.Route{Table: core.DBTable, Path: get.Path, Methods: core.Methods{Put: putNumber(s, own[s])}}
		if own[s] {
			get.Access, get.Allow, put.Access = access.Documents, "PUT,GET", access.Settings
		}
		out = append(out, get, put)
	}
	return out
}

// getNumber answers GET /{db}/_revs_limit and its like.
func getNumber(s dbsetting.Setting) func(*core.Call) error {
	return func(c *core.Call) error {
		return c.Response.SendJSON(http.StatusOK, strconv.AppendInt(nil, int64(c.DB.Setting(s)), 10))
	}
}

// putNumber answers PUT /{db}/_revs_limit and its like. own: administrators of the database may.
func putNumber(s dbsetting.Setting, own bool) func(*core.Call) error {
	return func(c *core.Call) error {
		text, err := c.Body.ReadValue()
		if err != nil {
			return err
		}
		value, err := s.Parse(text)
		if err != nil {
			return err
		}
		mayI := func() error { return nil } // the route is for administrators of the server
		if own {
			mayI = administrators(c)
		}
		if err := alter(c, mayI, func() error { return c.DB.Set(c.Request.Context(), s, value) }); err != nil {
			return err
		}
		return c.Response.SendOK(http.StatusOK)
	}
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
