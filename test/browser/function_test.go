package browser

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
)

// Functions of design documents are written as JavaScript; a version that another user has
// saved meanwhile stays.
func TestFunctions(t *testing.T) {
	t.Parallel()
	s, c := newPond(t, 3)
	const ddoc = "/pond/_design/frogs"
	c.open("#/designs/pond")
	c.says("No design documents yet.")
	c.press("New function")
	c.choose("Kind", "validate_doc_update")
	c.fill("Design document", "frogs")
	c.accessible()
	c.press("Write it")
	c.write("function (doc) {\n  if (doc.legs < 0) throw { forbidden: 'so few legs' };\n}")
	c.press("Save")
	c.says("Saved as revision 1-")
	s.call("PUT", "/pond/snake", `{"legs":-1}`, 403)
	c.press("Views")
	c.press("New function")
	c.fill("Design document", "frogs")
	c.fill("Name of the function", "by name")
	c.press("Write it")
	c.until(`location.hash === "#/function/pond/frogs/indexes/by%20name"`)
	c.shot("function")
	c.accessible()
	rev := s.call("GET", ddoc, "", 200)["_rev"]
	s.call("PUT", ddoc, fmt.Sprintf(`{"_rev":%s,"language":"javascript","filters":{"theirs":"function () {}"}}`, quote(rev)), 201)
	c.press("Save")
	c.says("This function is the same in it.")
	c.press("Save mine into it")
	c.says("Saved as revision 3-")
	if text := quote(s.call("GET", ddoc, "", 200)); !strings.Contains(text, "theirs") || !strings.Contains(text, `"by name":{"index":"function`) {
		t.Errorf("stored: %s", text)
	}
	c.press("Views")
	c.press("by name")
	c.fill("Query", "frog")
	c.press("Search")
	c.says("3 documents match")
}

// What is waited for is told after a while.
func TestWaitingForAView(t *testing.T) {
	t.Parallel()
	s, c := newPond(t, 3)
	s.call("PUT", "/pond/_design/frogs", `{"views":{"a":{"map":"function (doc) { emit(1) }"}}}`, 201)
	c.exec("hold requests", `
		const send = window.fetch, held = new Promise((go) => window.release = go);
		window.fetch = async (to, o) => (String(to).includes("/_view/") && await held, send(to, o));`)
	c.exec("open", `location.hash = "#/view/pond/frogs/a"`)
	c.says("Waiting for the index")
	c.exec("release", "release()")
	c.says("3 rows in the view")
}

// Names that look like programs are shown as they are, and long ones do not make narrow pages wider.
func TestHostileNamesOfViews(t *testing.T) {
	t.Parallel()
	s, c := newPond(t, 3)
	const script = `<img src=x onerror="ran=1">/../` + "\u202e"
	name, long := url.PathEscape(script), strings.Repeat("long", 60)
	s.call("PUT", "/pond/_design/"+name, fmt.Sprintf(`{"views":{%[1]s:{"map":"function (doc) { emit('%[3]s', '%[3]s') }"},%[2]s:{"map":"function (doc) {}"}},
		"indexes":{%[1]s:{"index":"function (doc) { index('default', doc.name, {store: true}) }"}}}`, quote(script), quote(long), long), 201)
	s.call("POST", "/pond/_index", fmt.Sprintf(`{"index":{"fields":[%s]},"name":%s}`, quote(long), quote(script)), 200)
	narrow := emulation.SetDeviceMetricsOverrideParams{Width: 380, Height: 800, DeviceScaleFactor: 1}
	c.run("narrow", command(emulation.SetDeviceMetricsOverride, narrow))
	for hash, text := range map[string]string{
		"#/designs/pond":                                       `\u202e`,
		"#/view/pond/" + name + "/" + name:                     "3 rows in the view",
		"#/search/pond/" + name + "/" + name + "?q=frog":       "3 documents match",
		"#/mango/pond?q=" + url.QueryEscape(`{"selector":{}}`): "3 results",
		"#/changes/pond?since=0":                               "Live · 5 changes",
		"#/function/pond/" + name + "/indexes/" + name:         "search index",
	} {
		c.open(hash)
		c.says(text)
		if eval[bool](c, `document.documentElement.scrollWidth > innerWidth`) {
			t.Errorf("%s makes the page wider than the window", hash)
		}
		c.shot(strings.Split(hash, "/")[1] + "-narrow")
		c.accessible()
	}
	if eval[bool](c, `"ran" in window`) {
		t.Error("a script of a name ran")
	}
}
