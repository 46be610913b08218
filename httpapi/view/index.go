package view

import (
	"net/http"
	"strconv"
	"strings"

	"divan/cluster/view"
	"divan/httpapi/core"
	"divan/shard/index"
	"divan/storage/doc"
)

// getInfo answers GET /{db}/_design/{ddoc}/_info (api.md section 12).
func getInfo(c *core.Call) error {
	def, err := c.API.Deps.Views.Definition(c.Request.Context(), c.DB, c.DocID)
	if err != nil {
		return err
	}
	info := &view.Info{Language: "javascript"}
	if def != nil {
		if info, err = c.API.Deps.Views.Info(c.Request.Context(), c.DB, def); err != nil {
			return err
		}
	}
	return c.Response.SendJSON(http.StatusOK, appendInfo(nil, strings.TrimPrefix(c.DocID, doc.DesignPrefix), info))
}

func appendInfo(dst []byte, name string, i *view.Info) []byte {
	dst = doc.AppendString(append(dst, `{"name":`...), name)
	dst = core.AppendCounts(append(dst, `,"view_index":{"updates_pending":{`...), []core.Count{
		{Name: "minimum", N: i.Pending.Minimum}, {Name: "preferred", N: i.Pending.Preferred}, {Name: "total", N: i.Pending.Total},
	})
	dst = append(dst, `},"waiting_commit":false,`...)
	dst = core.AppendCounts(dst, []core.Count{{Name: "waiting_clients", N: uint64(i.Waiting)}})
	dst = strconv.AppendBool(append(dst, `,"updater_running":`...), i.Updating)
	dst = core.AppendCounts(append(dst, ','), []core.Count{{Name: "update_seq", N: i.Seq}})
	dst = core.AppendCounts(append(dst, `,"sizes":{`...), []core.Count{
		{Name: "file", N: uint64(i.File)}, {Name: "external", N: uint64(i.External)}, {Name: "active", N: uint64(i.Active)},
	})
	dst = doc.AppendString(append(dst, `},"signature":`...), i.Signature)
	dst = core.AppendCounts(append(dst, ','), []core.Count{{Name: "purge_seq", N: i.PurgeSeq}})
	dst = doc.AppendString(append(dst, `,"language":`...), i.Language)
	dst = strconv.AppendBool(append(dst, `,"compact_running":`...), i.Compacting)
	dst = core.AppendStrings(append(dst, `,"collator_versions":`...), i.Collations)
	dst = core.AppendLeftOut(dst, i.LeftOut, i.Left)
	return append(dst, "}}"...)
}

// compact answers POST /{db}/_compact/{ddoc}.
func compact(c *core.Call) error {
	if err := c.Body.RequireJSON(); err != nil {
		return err
	}
	def, err := c.API.Deps.Views.Definition(c.Request.Context(), c.DB, doc.DesignPrefix+c.Path[2])
	if err != nil {
		return err
	}
	if def != nil {
		if err := c.API.Deps.Views.Compact(c.Request.Context(), c.DB, def); err != nil {
			return err
		}
	}
	return c.Response.SendOK(http.StatusAccepted)
}

// cleanup answers POST /{db}/_view_cleanup.
func cleanup(c *core.Call) error {
	if err := c.Body.RefuseForms(); err != nil {
		return err
	}
	if err := c.API.Deps.Indexes.Cleanup(c.Request.Context(), c.DB, index.View); err != nil {
		return err
	}
	return c.Response.SendOK(http.StatusAccepted)
}
