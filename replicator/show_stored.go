package replicator

import (
	"divan/replicator/spec"
	"divan/storage/doc"
)

// Stored returns a row for a document whose replication no node runs. Its body tells whether the
// replication has ended; if not, no node has seen the document yet.
func Stored(db, id string, body []byte) Row {
	text := func(name string) string {
		value, _ := doc.Unquote(doc.Lookup(body, name))
		return value
	}
	row := Row{ID: id, State: text("_replication_state")}
	failures, info, started := int64(0), []byte("null"), ""
	switch row.State {
	case Failed:
		failures, info = 1, errorInfo(text("_replication_state_reason"))
	case Completed:
		info, started = storedInfo(doc.Lookup(body, "_replication_stats"))
	default:
		row.State = Initializing
	}
	o := object{}
	o.text("database", db)
	o.text("doc_id", id)
	o.raw("id", []byte("null"))
	o.orNull("source", storedURL(doc.Lookup(body, "source")))
	o.orNull("target", storedURL(doc.Lookup(body, "target")))
	o.text("state", row.State)
	o.count("error_count", failures)
	o.raw("info", info)
	o.orNull("start_time", started)
	o.orNull("last_updated", text("_replication_state_time"))
	row.JSON = append(o.out, '}')
	return row
}

// storedInfo takes the figures that a document has apart.
func storedInfo(stats []byte) (info []byte, started string) {
	if !doc.IsObject(stats) {
		return []byte("null"), ""
	}
	o := object{}
	_ = doc.EachMember(stats, func(name string, value []byte) error { // what is stored is well-formed
		if name == "start_time" {
			started, _ = doc.Unquote(value)
			return nil
		}
		o.raw(name, value)
		return nil
	})
	if o.out == nil {
		return []byte("{}"), started
	}
	return append(o.out, '}'), started
}

// storedURL is the masked URL of a side of a document.
func storedURL(value []byte) string {
	text, ok := doc.Unquote(value)
	if !ok {
		text, _ = doc.Unquote(doc.Lookup(value, "url"))
	}
	if text == "" {
		return ""
	}
	return spec.Mask(text)
}
