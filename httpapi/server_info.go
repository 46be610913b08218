package httpapi

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"

	"divan/storage/doc"
	"divan/storage/fault"
)

// serverRoutes lists the endpoints of the server that say something about it.
func serverRoutes() []route {
	return []route{
		{table: serverTable, path: "/", allow: "GET,HEAD", methods: methods{get: getRoot}},
		{table: serverTable, path: "/_up", allow: "GET,HEAD", methods: methods{get: getUp}},
		{
			table: serverTable, path: "/_session", allow: "GET,HEAD,POST,DELETE", name: "session",
			methods: methods{get: getSession, post: postSession, del: deleteSession},
		},
		{table: serverTable, path: "/_uuids", allow: "GET", methods: methods{get: getUUIDs}},
		{table: serverTable, path: "/_reload_query_servers", allow: "POST", methods: methods{post: reloadQueryServers}},
		{table: serverTable, path: "/favicon.ico", allow: "GET", methods: methods{get: getFavicon}},
	}
}

// getRoot answers GET /.
func getRoot(c *call) error {
	out := []byte(`{"couchdb":"Welcome","divan":"Welcome","version":"` + compatible + `","git_sha":"`)
	out = append(out, gitSHA(c.api.deps.Version)...)
	out = append(out, `","uuid":`...)
	out = doc.AppendString(out, c.api.deps.Meta.UUID())
	out = append(out, `,"features":["partitioned"],"vendor":`...)
	vendor := c.cfg.Section("vendor")
	vendor["name"] = c.cfg.Vendor.Name
	vendor["version"] = cmp.Or(c.cfg.Vendor.Version, c.api.deps.Version)
	out = appendTexts(out, vendor)
	return c.sendJSON(http.StatusOK, append(out, '}'))
}

// gitSHA stands for the commit: nine digits that tell versions apart.
func gitSHA(version string) string {
	sum := sha256.Sum256([]byte(version))
	return hex.EncodeToString(sum[:])[:9]
}

// getFavicon answers GET /favicon.ico: there is none, which browsers remember.
func getFavicon(*call) error { return fault.New(fault.NotFound, "missing") }

// getUUIDs answers GET /_uuids.
func getUUIDs(c *call) error {
	count := int64(1)
	if text, ok := c.qs("count"); ok {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return fault.New(fault.BadRequest, "count must be a positive integer")
		}
		count = n
	}
	if count > c.cfg.UUIDs.MaxCount {
		return fault.New(fault.BadRequest, "count parameter too large")
	}
	out := []byte(`{"uuids":[`)
	for i := range count {
		if i > 0 {
			out = append(out, ',')
		}
		out = doc.AppendString(out, c.newID())
	}
	out = append(out, "]}"...)
	h := c.w.Header()
	h["Cache-Control"], h["Pragma"], h["Expires"] = noCache, noCache, longAgo
	c.setETag(hashOf(out))
	return c.sendJSON(http.StatusOK, out)
}

// longAgo is an Expires that has passed.
var longAgo = []string{"Mon, 01 Jan 1990 00:00:00 GMT"}

// reloadQueryServers answers POST /_reload_query_servers. Functions run inside
// this process and are compiled from the design document whenever it changes,
// so that there is nothing that could be out of date.
func reloadQueryServers(c *call) error {
	if err := c.requireJSON(); err != nil {
		return err
	}
	return c.sendOK(http.StatusOK)
}
