package node

import (
	"bytes"
	"net/http"
	"slices"
	"strconv"
	"time"

	"divan/httpapi/core"
	"divan/storage/doc"
)

// ownTasks appends the tasks of this node, separated by commas.
func ownTasks(a *core.API, dst []byte) []byte {
	var own []byte
	if a.Deps.Tasks != nil {
		for i, t := range a.Deps.Tasks() {
			if i > 0 {
				own = append(own, ',')
			}
			own = appendJSON(&t, own)
		}
	}
	if a.Deps.Replicator != nil {
		own = a.Deps.Replicator.Jobs.AppendTasks(own)
	}
	return append(dst, own...)
}

// getNodeTasks answers GET /_node/{name}/_active_tasks: the tasks of one node.
func getNodeTasks(c *core.Call) error {
	return c.Response.SendJSON(http.StatusOK, append(ownTasks(c.API, []byte{'['}), ']'))
}

// tasksTimeout is how long the other nodes have to tell what they do.
const tasksTimeout = 2 * time.Second

// getActiveTasks answers GET /_active_tasks: the tasks of all nodes. One that
// does not answer in time is left out.
func getActiveTasks(c *core.Call) error {
	lists := [][]byte{ownTasks(c.API, nil)}
	for _, body := range c.API.GetFromOthers(c.Request.Context(), c.User, "/_active_tasks", tasksTimeout) {
		if doc.IsArray(body) && doc.EachElement(body, func([]byte) error { return nil }) == nil {
			lists = append(lists, bytes.TrimSpace(body[1:len(body)-1]))
		}
	}
	lists = slices.DeleteFunc(lists, func(l []byte) bool { return len(l) == 0 })
	out := append([]byte{'['}, bytes.Join(lists, []byte{','})...)
	return c.Response.SendJSON(http.StatusOK, append(out, ']'))
}

// appendJSON appends the task with the fields of CouchDB and with task and
// status (api.md section 20, row 12).
func appendJSON(t *core.Task, dst []byte) []byte {
	progress := uint64(100)
	if t.TotalChanges > 0 {
		progress = min(t.ChangesDone*100/t.TotalChanges, 100)
	}
	status := strconv.FormatUint(progress, 10) + "%"
	indexer := ""
	if t.Type == "indexer" {
		indexer = t.PID
	}
	for i, m := range []struct{ name, value string }{
		{"node", t.Node},
		{"pid", t.PID},
		{"type", t.Type},
		{"task", t.Type},
		{"status", status},
		{"database", t.Database},
		{"design_document", t.DesignDocument},
		{"index", t.Index},
		{"indexer_pid", indexer},
		{"phase", t.Phase},
		{"failed_document", t.FailedDocument},
		{"error", t.Error},
	} {
		if i > 5 && m.value == "" {
			continue
		}
		dst = append(dst, "{,"[min(i, 1)], '"')
		dst = append(dst, m.name...)
		dst = append(dst, `":`...)
		dst = doc.AppendString(dst, m.value)
	}
	for _, m := range []struct {
		name  string
		value uint64
	}{
		{"changes_done", t.ChangesDone},
		{"total_changes", t.TotalChanges},
		{"progress", progress},
		{"started_on", uint64(t.StartedOn.Unix())},
		{"updated_on", uint64(t.Updated.Unix())},
	} {
		dst = append(dst, `,"`...)
		dst = append(dst, m.name...)
		dst = append(dst, `":`...)
		dst = strconv.AppendUint(dst, m.value, 10)
	}
	if t.LeftOut > 0 {
		dst = strconv.AppendUint(append(dst, `,"documents_left_out":`...), t.LeftOut, 10)
	}
	return append(dst, '}')
}
