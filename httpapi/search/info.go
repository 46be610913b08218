package search

import (
	"net/http"

	"divan/httpapi/core"
	"divan/shard/index"
	"divan/shard/search"
	"divan/shard/search/syntax"
	"divan/storage/doc"
	"divan/storage/fault"
)

// info reads what a path of information names, and begins the answer.
func (f *Family) info(c *core.Call, d syntax.Dialect) (dst []byte, signature string, out search.Info, err error) {
	at, err := placeOf(c)
	if err != nil {
		return nil, "", out, err
	}
	def, err := at.definition(c, d)
	if err != nil {
		return nil, "", out, err
	}
	out, err = f.searcher.Info(c.Request.Context(), c.DB, def)
	dst = doc.AppendString([]byte(`{"name":`), at.ddoc+"/"+at.index)
	return append(dst, `,"search_index":{`...), def.Signature, out, err
}

// getSearchInfo answers GET /{db}/_design/{ddoc}/_search_info/{index}.
func (f *Family) getSearchInfo(c *core.Call) error {
	dst, signature, i, err := f.info(c, syntax.Search)
	if err != nil {
		return err
	}
	dst = core.AppendCounts(dst, []core.Count{
		{Name: "pending_seq", N: i.Seq}, {Name: "doc_del_count", N: i.Dead}, {Name: "doc_count", N: i.Live}, {Name: "disk_size", N: uint64(i.Size)}, {Name: "committed_seq", N: i.Seq},
	})
	dst = doc.AppendString(append(dst, `,"signature":`...), signature)
	dst = core.AppendLeftOut(dst, i.LeftOut, i.Left)
	return c.Response.SendJSON(http.StatusOK, append(dst, "}}"...))
}

// getSearchDiskSize answers GET /{db}/_design/{ddoc}/_search_disk_size/{index}.
func (f *Family) getSearchDiskSize(c *core.Call) error {
	dst, _, i, err := f.info(c, syntax.Search)
	if err != nil {
		return err
	}
	return c.Response.SendJSON(http.StatusOK, append(core.AppendCounts(dst, []core.Count{{Name: "disk_size", N: uint64(i.Size)}}), "}}"...))
}

// getNouveauInfo answers GET /{db}/_design/{ddoc}/_nouveau_info/{index}.
func (f *Family) getNouveauInfo(c *core.Call) error {
	dst, signature, i, err := f.info(c, syntax.Nouveau)
	switch {
	case err != nil:
		return err
	case !i.Exists:
		return fault.New(fault.NotFound, "Index does not exist")
	}
	dst = core.AppendCounts(dst, []core.Count{
		{Name: "update_seq", N: i.Seq}, {Name: "purge_seq", N: i.PurgeSeq}, {Name: "num_docs", N: i.Live}, {Name: "disk_size", N: uint64(i.Size)},
	})
	dst = doc.AppendString(append(dst, `,"signature":`...), signature)
	dst = core.AppendLeftOut(dst, i.LeftOut, i.Left)
	return c.Response.SendJSON(http.StatusOK, append(dst, "}}"...))
}

// cleanup answers POST /{db}/_search_cleanup: indexes that no design document wants any more
// are removed, those of _nouveau as well.
func cleanup(c *core.Call) error {
	if err := c.Body.RefuseForms(); err != nil {
		return err
	}
	if err := c.API.Deps.Indexes.Cleanup(c.Request.Context(), c.DB, index.Search); err != nil {
		return err
	}
	return c.Response.SendOK(http.StatusAccepted)
}

// cleanupJSON answers POST /{db}/_nouveau_cleanup, which is the same.
func cleanupJSON(c *core.Call) error {
	if err := c.Body.RequireJSON(); err != nil {
		return err
	}
	return cleanup(c)
}
