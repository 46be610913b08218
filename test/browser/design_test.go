package browser

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// newPond is a server with a database of some frogs, and the console, where the administrator is logged in.
func newPond(t *testing.T, frogs int) (*server, *screen) {
	t.Helper()
	s := newServer(t)
	s.call("PUT", "/pond", "", 201)
	var docs []string
	for i := range frogs {
		docs = append(docs, fmt.Sprintf(`{"_id":"frog-%03d","age":%d,"color":"%s","name":"The frog %d of ponds","weight":12345678901234567890}`,
			i, i%10, []string{"green", "brown"}[i%2], i))
	}
	s.call("POST", "/pond/_bulk_docs", `{"docs":[`+strings.Join(docs, ",")+`]}`, 201)
	c := newScreen(t, s)
	c.open("#/db/pond")
	c.logIn("adm", "pass")
	c.says(fmt.Sprintf("%d documents", frogs))
	return s, c
}

// choose takes an option of the last select with a label.
func (c *screen) choose(label, value string) {
	c.t.Helper()
	c.until(fmt.Sprintf(`(() => {
		const is = (e) => (e.ariaLabel ?? e.labels?.[0]?.innerText ?? "").trim().startsWith(%q);
		const field = [...document.querySelectorAll("select")].findLast(is);
		if (!field) return false;
		field.value = %q;
		field.dispatchEvent(new Event("change", { bubbles: true }));
		return true;
	})()`, label, value))
}

// A view is written, tried, saved, read page by page and reduced; its design document keeps what else is in it.
func TestViews(t *testing.T) {
	t.Parallel()
	s, c := newPond(t, 120)
	s.call("PUT", "/pond/_design/frogs%20%26%20toads", `{"big":12345678901234567890,"views":{"all":{"map":"function (doc) { emit(doc._id, null) }","reduce":"_count"}},
		"filters":{"green":"function (doc) { return doc.color === 'green' }"},"indexes":{"names":{"index":"function (doc) { index('name', doc.name) }"}},
		"validate_doc_update":"function () {}"}`, 201)
	c.press("Views")
	for _, text := range []string{"frogs & toads", "reduced by _count", "green", "of each document that is written"} {
		c.says(text)
	}
	c.says("changes behind")
	c.shot("designs")
	c.accessible()
	c.press("New view")
	c.fill("Design document", "frogs & toads")
	c.fill("Name of the view", "by age/1")
	c.write("function (doc) { em(")
	c.press("Save")
	c.says("Compilation of the map function in the 'by age/1' view failed")
	c.write("function (doc) {\n  if (doc.age > 3) emit([doc.color, doc.age], 1.5); // grown\n}")
	c.press("Try on 50 documents")
	c.says("50 documents, 30 rows")
	c.shot("trial")
	c.accessible()
	for _, name := range s.names("/_all_dbs") {
		if strings.HasPrefix(name, "console-try-") {
			t.Errorf("%s is left", name)
		}
	}
	c.press("Close the trial")
	c.choose("Reduce function", "_sum")
	c.press("Save")
	c.until(`location.hash === "#/view/pond/frogs%20%26%20toads/by%20age%2F1"`)
	c.says("72 rows in the view")
	ddoc := s.call("GET", "/pond/_design/frogs%20%26%20toads", "", 200)
	if ddoc["big"] != json.Number("12345678901234567890") || len(ddoc["views"].(map[string]any)) != 2 {
		t.Errorf("stored: %v", ddoc)
	}
	c.shot("view")
	c.accessible()
	c.press("Next page")
	c.until(`document.querySelectorAll("tbody tr").length === 22`)
	c.fill("Key", `["green",`)
	c.press("Show rows")
	c.says("invalid UTF-8 JSON")
	c.fill("Key", `["green",4]`)
	c.press("Show rows")
	c.until(`document.querySelectorAll("tbody tr").length === 12`)
	c.says("frog-004")
	c.fill("Key", ``)
	c.choose("Reduce", "1")
	c.press("Show rows")
	c.until(`document.querySelector("tbody")?.innerText.includes('["green"]')`)
	c.until(`document.querySelectorAll("tbody tr").length === 2`)
	c.shot("reduced")
	c.accessible()
	c.choose("Reduce", "0")
	c.says("108")
}

// names returns the strings of a list.
func (s *server) names(path string) []string {
	s.t.Helper()
	answer, err := http.Get("http://adm:pass@" + s.host + path)
	if err != nil {
		s.t.Fatal(err)
	}
	var out []string
	err = json.NewDecoder(answer.Body).Decode(&out)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		s.t.Fatal(err)
	}
	return out
}

// Another user saves the design document first: that change stays.
func TestConflictOfViews(t *testing.T) {
	t.Parallel()
	s, c := newPond(t, 3)
	const ddoc = "/pond/_design/frogs"
	rev := s.call("PUT", ddoc, `{"views":{"a":{"map":"function (doc) { emit(1) }"}}}`, 201)["rev"]
	c.open("#/view/pond/frogs/a")
	c.says("3 rows in the view")
	c.write("function (doc) { emit(doc.color) }")
	c.says("Not saved")
	s.call("PUT", ddoc, fmt.Sprintf(`{"_rev":%s,"theirs":1.0,"views":{"a":{"map":"function (doc) { emit(2) }"},"b":{"map":"function (doc) { emit(3) }"}}}`, quote(rev)), 201)
	c.press("Save")
	c.says("It has other functions for this view.")
	c.shot("conflict")
	c.accessible()
	c.press("Save mine into it")
	c.says("Saved as revision 3-")
	c.says(`"brown"`)
	now := s.call("GET", ddoc, "", 200)
	if text := quote(now); !strings.Contains(text, "emit(3)") || !strings.Contains(text, "emit(doc.color)") || !strings.Contains(text, `"theirs":1`) {
		t.Errorf("stored: %s", text)
	}
}

// A draft outlives a reload; a version that another user has saved meanwhile is not
// overwritten unseen.
func TestDraftOfView(t *testing.T) {
	t.Parallel()
	s, c := newPond(t, 3)
	const ddoc = "/pond/_design/frogs"
	rev := s.call("PUT", ddoc, `{"views":{"a":{"map":"function (doc) { emit(1) }"}}}`, 201)["rev"]
	c.open("#/view/pond/frogs/a")
	c.says("3 rows in the view")
	c.write("function (doc) { emit('mine') }")
	c.until("sessionStorage.length === 1")
	c.run("reload", chromedp.Reload())
	c.says("The draft from before, not saved")
	if text := c.editorText(); text != "function (doc) { emit('mine') }" {
		t.Errorf("after a reload: %s", text)
	}
	s.call("PUT", ddoc, fmt.Sprintf(`{"_rev":%s,"views":{"a":{"map":"function (doc) { emit('theirs') }"}}}`, quote(rev)), 201)
	c.run("reload", chromedp.Reload())
	c.says("It has other functions for this view.")
	c.until(`[...document.querySelectorAll("button")].find((b) => b.innerText === "Save").disabled`)
	c.press("Take theirs")
	c.until(`document.querySelector(".editor").shadowRoot.textContent.includes("theirs")`)
	c.until("sessionStorage.length === 0")
	c.says(`"theirs"`)
}

// An account without rights reads views, and is told that it may not save any.
func TestReaderOfViews(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.account("ada", "secret")
	s.call("PUT", "/pond", "", 201)
	s.call("PUT", "/pond/_security", `{"members":{"names":["ada"],"roles":[]}}`, 200)
	s.call("PUT", "/pond/frog", `{"age":4}`, 201)
	s.call("PUT", "/pond/_design/frogs", `{"views":{"a":{"map":"function (doc) { emit(doc.age) }"}}}`, 201)
	c := newScreen(t, s)
	c.open("#/view/pond/frogs/" + url.PathEscape("a"))
	c.logIn("ada", "secret")
	c.says("1 row in the view")
	c.says("only a server administrator can make")
	c.write("function (doc) { emit(5) }")
	c.press("Save")
	c.says("You are not a db or server admin.")
	c.shot("refused")
	c.accessible()
}
