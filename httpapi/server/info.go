package server

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"

	"divan/cluster/access"
	"divan/httpapi/core"
	"divan/storage/doc"
	"divan/storage/fault"
)

// Routes lists the endpoints of the server that say something about it.
func Routes() []core.Route {
	return []core.Route{
		{Table: core.ServerTable, Path: "/", Access: access.Anyone, Allow: "GET,HEAD", Methods: core.Methods{Get: getRoot}},
		{Table: core.ServerTable, Path: "/_up", Access: access.Health, Allow: "GET,HEAD", Methods: core.Methods{Get: getUp}},
		{
			Table: core.ServerTable, Path: "/_session", Access: access.Anyone, Allow: "GET,HEAD,POST,DELETE", Name: "session",
			Methods: core.Methods{Get: getSession, Delete: deleteSession},
		},
		{Table: core.ServerTable, Path: "/_session", Access: access.LogIn, Methods: core.Methods{Post: postSession}},
		{Table: core.ServerTable, Path: "/_uuids", Access: access.Anyone, Allow: "GET", Methods: core.Methods{Get: getUUIDs}},
		{Table: core.ServerTable, Path: "/_reload_query_servers", Allow: "POST", Methods: core.Methods{Post: reloadQueryServers}},
		{Table: core.ServerTable, Path: "/favicon.ico", Access: access.Anyone, Allow: "GET", Methods: core.Methods{Get: getFavicon}},
	}
}

// getRoot answers GET /: a browser is sent to the console.
func getRoot(c *core.Call) error {
	c.Response.Header()["Vary"] = []string{"Accept"}
	if wantsPage(c) {
		c.Response.Header()["Location"] = []string{"_utils/"} // a proxy may have put a path in front
		return c.Response.SendEmpty(http.StatusFound)
	}
	out := []byte(`{"couchdb":"Welcome","divan":"Welcome","version":"` + core.CouchDBVersion + `","git_sha":"`)
	out = append(out, gitSHA(c.API.Deps.Version)...)
	out = append(out, `","uuid":`...)
	out = doc.AppendString(out, c.API.Deps.Meta.UUID())
	out = append(out, `,"features":["nouveau","partitioned","quickjs","reshard","scheduler","search"],"vendor":`...)
	vendor := c.Config.Section("vendor")
	vendor["name"] = c.Config.Vendor.Name
	vendor["version"] = cmp.Or(c.Config.Vendor.Version, c.API.Deps.Version)
	out = core.AppendTexts(out, vendor)
	return c.Response.SendJSON(http.StatusOK, append(out, '}'))
}

// wantsPage reports whether a browser asks: it names text/html, which programs
// that take everything do not, and no JSON.
func wantsPage(c *core.Call) bool {
	accept := strings.Join(c.Request.Header["Accept"], ",")
	return strings.Contains(accept, "text/html") && core.Accepts(c.Request, "text/html") && !strings.Contains(accept, "application/json")
}

// gitSHA stands for the commit: nine digits that tell versions apart.
func gitSHA(version string) string {
	sum := sha256.Sum256([]byte(version))
	return hex.EncodeToString(sum[:])[:9]
}

// getFavicon answers GET /favicon.ico: there is none, which browsers remember.
func getFavicon(*core.Call) error { return fault.New(fault.NotFound, "missing") }

// getUUIDs answers GET /_uuids.
func getUUIDs(c *core.Call) error {
	count := int64(1)
	if text, ok := c.QueryValue("count"); ok {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return fault.New(fault.BadRequest, "count must be a positive integer")
		}
		count = n
	}
	if count > c.Config.UUIDs.MaxCount {
		return fault.New(fault.BadRequest, "count parameter too large")
	}
	out := []byte(`{"uuids":[`)
	for i := range count {
		if i > 0 {
			out = append(out, ',')
		}
		out = doc.AppendString(out, c.NewID())
	}
	out = append(out, "]}"...)
	h := c.Response.Header()
	h["Cache-Control"], h["Pragma"], h["Expires"] = core.NoCache, core.NoCache, longAgo
	c.Response.SetETag(core.HashOf(out))
	return c.Response.SendJSON(http.StatusOK, out)
}

// longAgo is an Expires that has passed.
var longAgo = []string{"Mon, 01 Jan 1990 00:00:00 GMT"}

// reloadQueryServers answers POST /_reload_query_servers. Functions run inside
// this process and are compiled from the design document whenever it changes,
// so that there is nothing that could be out of date.
func reloadQueryServers(c *core.Call) error {
	if err := c.Body.RequireJSON(); err != nil {
		return err
	}
	return c.Response.SendOK(http.StatusOK)
}
