package node

import (
	"maps"
	"net/http"
	"slices"

	"go.uber.org/zap"

	"divan/cluster/config"
	"divan/cluster/meta"
	"divan/httpapi/auth"
	"divan/httpapi/core"
	"divan/storage/doc"
	"divan/storage/fault"
)

// adminSection holds the server administrators.
const adminSection = "admins"

// getConfig answers GET /_node/{name}/_config: everything that is set.
func getConfig(c *core.Call) error {
	all := c.Config.All()
	out := []byte{'{'}
	for i, name := range slices.Sorted(maps.Keys(all)) {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(doc.AppendString(out, name), ':')
		out = core.AppendTexts(out, all[name])
	}
	return c.Response.SendJSON(http.StatusOK, append(out, '}'))
}

// getConfigSection answers GET /_node/{name}/_config/{section}.
func getConfigSection(c *core.Call) error {
	return c.Response.SendJSON(http.StatusOK, core.AppendTexts(nil, c.Config.Section(c.Path[3])))
}

// getConfigKey answers GET /_node/{name}/_config/{section}/{key}.
func getConfigKey(c *core.Call) error {
	value, ok := c.Config.Get(c.Path[3], c.Path[4])
	if !ok {
		return fault.New(fault.NotFound, "unknown_config_value")
	}
	return c.Response.SendJSON(http.StatusOK, doc.AppendString(nil, value))
}

// putConfigKey answers PUT /_node/{name}/_config/{section}/{key} with the value
// that was there before. Any JSON value may be set (api.md section 20, row 10).
func putConfigKey(c *core.Call) error {
	change := configChange(c)
	if err := config.CheckName(change.Section, change.Key); err != nil {
		return err
	}
	body, err := c.Body.ReadJSON()
	if err != nil {
		return err
	}
	if change.Value, err = config.ValueFromJSON(body); err != nil {
		return err
	}
	if change.Section == adminSection && config.IsHashed(change.Value) && !auth.ValidAdmin(change.Value) {
		return fault.New(fault.BadRequest, "An administrator's password must not begin like the stored form of one, unless it is one.")
	}
	old, err := c.API.Deps.Meta.Config.Set(c.Request.Context(), change)
	if err != nil {
		return err
	}
	if !config.Effective(change.Section, change.Key) {
		c.Response.Header()["Warning"] = []string{`299 - "` + config.TextNoEffect + `"`}
		c.Log.Warn("a setting has no effect: "+config.TextNoEffect, zap.String("section", change.Section), zap.String("key", change.Key))
	}
	return c.Response.SendJSON(http.StatusOK, doc.AppendString(nil, old))
}

// deleteConfigKey answers DELETE /_node/{name}/_config/{section}/{key} with the
// value that was there.
func (n *Family) deleteConfigKey(c *core.Call) error {
	change := configChange(c)
	if change.Section == adminSection {
		n.admins.Lock() // two that go at the same time would each see the other
		defer n.admins.Unlock()
		if c.API.Deps.Config.LastAdmin(change.Key, change.Volatile, auth.ValidAdmin) {
			return fault.New(fault.Forbidden, "The last server administrator cannot be deleted: nobody could set another one. Set that first.")
		}
	}
	old, err := c.API.Deps.Meta.Config.Delete(c.Request.Context(), change)
	if err != nil {
		return err
	}
	return c.Response.SendJSON(http.StatusOK, doc.AppendString(nil, old))
}

// configChange returns the key that the path names.
func configChange(c *core.Call) meta.ConfigChange {
	return meta.ConfigChange{
		Section: c.Path[3], Key: c.Path[4], Volatile: c.Request.Header.Get("X-Couch-Persist") == "false",
	}
}

// reloadConfig answers POST /_node/{name}/_config/_reload.
func reloadConfig(c *core.Call) error {
	if err := c.Body.RefuseForms(); err != nil {
		return err
	}
	if err := c.API.Deps.Meta.Config.Reload(c.Request.Context()); err != nil {
		return err
	}
	return c.Response.SendOK(http.StatusOK)
}
