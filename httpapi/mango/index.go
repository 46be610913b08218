package mango

import (
	"net/http"
	"strconv"

	"divan/cluster"
	"divan/httpapi/core"
	"divan/shard"
	"divan/shard/query/plan"
	"divan/storage/doc"
	"divan/storage/fault"
)

// listIndexes serves GET /{db}/_index.
func (f *Family) listIndexes(c *core.Call) error {
	if _, err := partition(c); err != nil {
		return err
	}
	limit, err := listParam(c, "limit", 1, -1)
	if err != nil {
		return err
	}
	skip, err := listParam(c, "skip", 0, 0)
	if err != nil {
		return err
	}
	indexes, err := f.finder.Indexes(c.Request.Context(), c.DB)
	if err != nil {
		return err
	}
	list := plan.List(indexes.List)
	answer := strconv.AppendInt([]byte(`{"total_rows":`), int64(len(list)), 10)
	list = list[min(skip, len(list)):]
	if limit >= 0 {
		list = list[:min(limit, len(list))]
	}
	answer = append(answer, `,"indexes":[`...)
	for i, x := range list {
		if i > 0 {
			answer = append(answer, ',')
		}
		answer = x.AppendJSON(answer)
	}
	return c.Response.SendJSON(http.StatusOK, append(answer, "]}"...))
}

// listParam reads a number of at least least.
func listParam(c *core.Call, name string, least, otherwise int) (int, error) {
	text, ok := c.QueryValue(name)
	if !ok {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least {
		return 0, &core.StatusError{
			Status: http.StatusBadRequest, Name: "invalid_list_index_params", Reason: "Index parameter ranges: limit > 1, skip > 0",
		}
	}
	return n, nil
}

// createIndex serves POST /{db}/_index.
func (f *Family) createIndex(c *core.Call) error {
	if _, err := partition(c); err != nil {
		return err
	}
	text, err := body(c)
	if err != nil {
		return err
	}
	x, err := plan.ParseCreate(text)
	if err != nil {
		return err
	}
	if err := x.Restrict(c.Config.Mango.IndexAllDisabled); err != nil {
		return err
	}
	if err := c.Rights().WriteDesign(); err != nil {
		return err
	}
	if x.Partitioned() && !c.DB.Meta().Partitioned {
		return errSaving("invalid_design_doc")
	}
	was, err := openDesign(c, x.Design)
	if err != nil {
		return err
	}
	var present []byte
	if was != nil && !was.Deleted {
		present = was.Body
	}
	now, err := x.AddTo(present)
	if err != nil {
		return err
	}
	result := "exists"
	if now != nil {
		result = "created"
		edit := shard.Edit{ID: x.Design, Body: now}
		if present != nil { // a document that was deleted is made again without a parent
			edit.Parent = was.Rev
		}
		if err := save(c, edit, x.W); err != nil {
			return err
		}
	}
	answer := doc.AppendString([]byte(`{"result":`), result)
	answer = doc.AppendString(append(answer, `,"id":`...), x.Design)
	answer = doc.AppendString(append(answer, `,"name":`...), x.Name)
	return c.Response.SendJSON(http.StatusOK, append(answer, '}'))
}

// openDesign returns a design document, as a tombstone when it was deleted; nil when
// there has never been one.
func openDesign(c *core.Call, id string) (*shard.Doc, error) {
	d, err := c.DB.Open(c.Request.Context(), cluster.OpenOptions{ID: id, AllowDeleted: true})
	if fault.Is(err, fault.NotFound) && !fault.Is(err, fault.NoDatabase) {
		return nil, nil //nolint:nilnil // it says so
	}
	return d, err
}

// save writes a design document.
func save(c *core.Call, edit shard.Edit, w int) error {
	results, err := c.DB.Update(c.Request.Context(), cluster.UpdateOptions{NewEdits: true, W: w, User: c.User}, []shard.Edit{edit})
	if err == nil {
		err = results[0].Err
	}
	if fault.Is(err, fault.Conflict) {
		return &core.StatusError{
			Status: http.StatusInternalServerError, Name: "error_saving_ddoc", Reason: "Encountered a conflict while saving the design document.",
		}
	}
	return err
}

func errSaving(why string) error {
	return &core.StatusError{
		Status: http.StatusInternalServerError, Name: "error_saving_ddoc",
		Reason: "Unknown error while saving the design document: " + why,
	}
}

// deleteIndex serves DELETE /{db}/_index/[_design/]{ddoc}/{type}/{name}.
func (f *Family) deleteIndex(c *core.Call) error {
	if err := c.Rights().WriteDesign(); err != nil {
		return err
	}
	w := 0
	if text, ok := c.QueryValue("w"); ok {
		w, _ = strconv.Atoi(text) // anything else is the default
	}
	path := c.Path[len(c.Path)-3:]
	of := func(x *plan.Index) bool { return x.Kind.String() == path[1] && x.Name == path[2] }
	if err := drop(c, plan.DesignID(path[0]), of, w); err != nil {
		return err
	}
	return c.Response.SendJSON(http.StatusOK, []byte(`{"ok":true}`))
}

// drop takes those indexes out of a design document, and deletes that when nothing else is
// in it.
func drop(c *core.Call, design string, which func(*plan.Index) bool, w int) error {
	was, err := openDesign(c, design)
	if err != nil {
		return err
	}
	var out []*plan.Index
	if was != nil && !was.Deleted {
		for _, x := range plan.IndexesOf(design, was.Body, false) {
			if which(x) {
				out = append(out, x)
			}
		}
	}
	if len(out) == 0 {
		return fault.New(fault.NotFound, "missing")
	}
	edit := shard.Edit{ID: design, Parent: was.Rev, Body: plan.RemoveFrom(was.Body, out)}
	if edit.Body == nil {
		edit.Deleted, edit.Body = true, []byte("{}")
	}
	return save(c, edit, w)
}

// deleteIndexes serves POST /{db}/_index/_bulk_delete.
func (f *Family) deleteIndexes(c *core.Call) error {
	text, err := body(c)
	if err != nil {
		return err
	}
	b, err := plan.ParseBulkDelete(text)
	if err != nil {
		return err
	}
	if err := c.Rights().WriteDesign(); err != nil {
		return err
	}
	var done, failed []byte
	for _, id := range b.Designs {
		err := drop(c, id, func(*plan.Index) bool { return true }, b.W)
		if fault.Is(err, fault.NoDatabase) {
			return err
		}
		if err == nil {
			done = append(doc.AppendString(append(comma(done), `{"id":`...), id), `,"ok":true}`...)
			continue
		}
		failed = doc.AppendString(append(comma(failed), `{"id":`...), id)
		failed = append(doc.AppendString(append(failed, `,"error":`...), c.Describe(err).Name), '}')
	}
	answer := append(append([]byte(`{"success":[`), done...), `],"fail":[`...)
	return c.Response.SendJSON(http.StatusOK, append(append(answer, failed...), "]}"...))
}

// comma separates what follows from what is there.
func comma(list []byte) []byte {
	if len(list) > 0 {
		return append(list, ',')
	}
	return list
}
