package browser

import (
	"fmt"
	"testing"
)

// Changes are shown as they come, from now on or from the beginning, of all documents or some; a pause loses
// none, nor does a server that goes away.
func TestChanges(t *testing.T) {
	t.Parallel()
	s, c := newPond(t, 600)
	c.press("Changes")
	c.says("Live · 0 changes")
	rev := s.call("PUT", "/pond/toad", `{"color":"brown"}`, 201)["rev"]
	c.says("Live · 1 change")
	c.says("toad")
	c.press("Pause")
	c.says("Paused · 1 change")
	s.call("DELETE", fmt.Sprintf("/pond/toad?rev=%v", rev), "", 200)
	c.press("Continue")
	c.says("deleted")
	c.shot("live")
	c.accessible()
	s.stop()
	c.says("It is tried again in")
	c.shot("broken")
	c.accessible()
	s.start()
	s.call("PUT", "/pond/newt", `{"color":"green"}`, 201)
	c.says("newt")
	c.says("Live · 3 changes")
	c.choose("From", "0")
	c.press("Follow")
	c.says("Live · 602 changes")
	c.says("The newest 500 are shown.")
	c.until(`document.querySelectorAll("tbody tr").length === 500`)
}

// The filters of the server choose which changes are shown, and an unknown one is refused.
func TestFilteredChanges(t *testing.T) {
	t.Parallel()
	s, c := newPond(t, 10)
	s.call("PUT", "/pond/_design/frogs", `{"views":{"old":{"map":"function (doc) { if (doc.age > 7) emit(1) }"}},
		"filters":{"of":"function (doc, req) { return doc.color === req.query.color }"}}`, 201)
	c.press("Changes")
	c.choose("From", "0")
	c.choose("Filter", "_doc_ids")
	c.exec("ids", `document.querySelector("textarea").value = "frog-001\nfrog-002"`)
	c.press("Follow")
	c.says("Live, filtered · 2 changes")
	c.accessible()
	c.choose("Filter", "_selector")
	c.exec("selector", `document.querySelector("textarea").value = '{"age": {"$lt": 3}}'`)
	c.press("Follow")
	c.says("Live, filtered · 3 changes")
	c.choose("Filter", "_design")
	c.press("Follow")
	c.says("Live, filtered · 1 change")
	c.choose("Filter", "_view")
	c.fill("View", "frogs/old")
	c.press("Follow")
	c.says("Live, filtered · 2 changes")
	c.choose("Filter", "function")
	c.fill("Filter function", "frogs/of")
	c.fill("Parameters", "color=green")
	c.press("Follow")
	c.says("Live, filtered · 5 changes")
	c.shot("filtered")
	c.accessible()
	c.fill("Filter function", "frogs/none")
	c.press("Follow")
	c.says("missing json key: none")
	c.shot("refused")
}
