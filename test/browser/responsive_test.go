package browser

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"golang.org/x/sync/errgroup"
)

// longestTask is how long the page may not answer, in milliseconds.
const longestTask = 200

// longTasks is run in each page before its own scripts.
const longTasks = `window.longTasks = [];
new PerformanceObserver((list) => longTasks.push(...list.getEntries().map((e) => e.duration))).observe({type: "longtask", buffered: true});`

// newMeasured is a screen whose pages note their long tasks.
func newMeasured(t *testing.T, s *server) *screen {
	t.Helper()
	c := newScreen(t, s)
	c.run("note long tasks", command(page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: longTasks}))
	return c
}

// slowness is how many times as long as on an idle machine a fixed piece of work takes now.
func (c *screen) slowness() float64 {
	const idle = 60 // milliseconds, of one core of 2020
	ms := eval[float64](c, `(() => {
		const begun = performance.now();
		for (let i = 0, x = 0; i < 60_000_000; i++) x = (Math.imul(x, 31) + i) | 0;
		const ms = performance.now() - begun;
		return new Promise((done) => setTimeout(() => (longTasks.splice(0), done(ms)), 100)); // it is a long task itself
	})()`)
	return max(ms/idle, 1)
}

// answers wants that the page answered all the time since the last call. On a machine that does
// much else, all takes longer.
func (c *screen) answers(during string) {
	c.t.Helper()
	tasks := eval[[]float64](c, `new Promise((done) => setTimeout(() => done(longTasks.splice(0)), 1000))`)
	slowness := c.slowness()
	c.t.Logf("%s: tasks of %.0f ms, on a machine that is %.1f times as slow as an idle one", during, tasks, slowness)
	for _, ms := range tasks {
		if ms > longestTask*slowness {
			c.t.Errorf("%s: the page did not answer for %.0f ms", during, ms)
		}
	}
}

// wide is a document of many fields.
func wide(fields int, value string) string {
	var out strings.Builder
	out.WriteString(`{"_id":"doc"`)
	for i := range fields {
		fmt.Fprintf(&out, `,"field %d":%s`, i, value)
	}
	out.WriteString("}")
	return out.String()
}

// A document of 8 MB is shown, and the page answers meanwhile, with any content.
func TestLargeDocuments(t *testing.T) {
	const size = 7_800_000
	for name, doc := range map[string]string{
		"texts":   wide(1000, quote(strings.Repeat("all work and no play ", size/1000/21))),
		"fields":  wide(size/20, "12"),
		"numbers": `{"_id":"doc","numbers":[1` + strings.Repeat(",1", size/2) + `]}`,
		"line":    `{"_id":"doc","line":"` + strings.Repeat("x", size) + `"}`,
		"deep":    `{"_id":"doc","deep":` + strings.Repeat("[", 500) + strings.Repeat(`1,`, size/2) + `1` + strings.Repeat("]", 500) + "}",
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.call("PUT", "/pond", "", 201)
			s.call("PUT", "/pond/doc", doc, 201)
			c := newMeasured(t, s)
			c.open("#/")
			c.logIn("adm", "pass")
			c.says("pond")
			c.answers("log-in")
			for _, view := range []string{"db/pond?as=table", "doc/pond/doc", "revisions/pond/doc", "attachments/pond/doc"} {
				c.open("#/" + view)
				c.says("doc")
				c.until(`!document.body.innerText.includes("Loading")`)
				c.answers(view)
			}
			c.shot(name)
		})
	}
}

// A thousand fields are columns to choose from, and a thousand columns a table that answers.
func TestManyFields(t *testing.T) {
	s := newServer(t)
	s.call("PUT", "/pond", "", 201)
	var docs []string
	for i := range 60 {
		docs = append(docs, strings.Replace(wide(1000, quote(strings.Repeat("v", 100))), `"doc"`, fmt.Sprintf(`"doc %d"`, i), 1))
	}
	s.call("POST", "/pond/_bulk_docs", `{"docs":[`+strings.Join(docs, ",")+`]}`, 201)
	c := newMeasured(t, s)
	c.open("#/db/pond?as=table")
	c.logIn("adm", "pass")
	c.says("20 of 1,000 fields")
	c.answers("table")
	c.exec("open the fields", `document.querySelector("details.columns summary").click()`)
	c.says("900 more")
	c.answers("chooser")
	c.fill("Fields whose names contain", "99")
	c.until(`document.querySelectorAll(".choices label").length === 19`)
	c.exec("one more", `document.querySelector(".choices input:not(:checked)").click()`)
	c.says("21 of 1,000 fields")
	c.answers("one more column")
	var all []string
	for i := range 30 {
		all = append(all, fmt.Sprintf("field %d", i+500))
	}
	c.open("#/db/pond?as=table&columns=" + url.QueryEscape(quote(all)))
	c.says("A table has 30 columns at most.")
	c.answers("30 columns")
}

// A long document is edited when one wants that, with all that it has; what is saved is whole.
func TestLargeDocumentIsEdited(t *testing.T) {
	s := newServer(t)
	s.call("PUT", "/pond", "", 201)
	s.call("PUT", "/pond/doc", wide(25_000, "12345678901234567890"), 201)
	c := newScreen(t, s)
	c.open("#/doc/pond/doc")
	c.logIn("adm", "pass")
	c.says("This is the start of")
	c.accessible()
	c.shot("start")
	c.press("Edit all of it")
	c.says("Discard changes")
	_ = c.editorText()
	c.exec("focus", `document.querySelector(".editor").shadowRoot.querySelector(".cm-content").focus()`)
	c.run("type behind the first brace", chromedp.KeyEvent(kb.ArrowRight), insert(`"more":"typed",`))
	c.says("Not saved")
	c.press("Save")
	c.says("Saved as revision 2-")
	doc := s.call("GET", "/pond/doc", "", 200)
	if doc["more"] != "typed" || doc["field 24999"] != json.Number("12345678901234567890") || len(doc) != 25_003 {
		t.Errorf("stored: %d fields, %v, %v", len(doc), doc["more"], doc["field 24999"])
	}
}

// Names that would do harm as markup, turn the direction of writing or fill the window are shown as what they are.
func TestHostileDocuments(t *testing.T) {
	const script = `<img src=x onerror="window.ran = 1"><script>window.ran = 1</script>`
	s := newServer(t)
	s.call("PUT", "/pond", "", 201)
	ids := []string{script, "rtl \u202egnp.exe \u2067\u200f", strings.Repeat("x", 10_000), "a/b?c#d%", "مرحبا"}
	for _, id := range ids {
		for _, leaf := range []string{"aa", "bb", "cc"} {
			s.call("POST", "/pond/_bulk_docs", fmt.Sprintf(`{"new_edits":false,"docs":[{"_id":%s,"_rev":"1-%s",%s:%q,"text":%s,
				"_attachments":{%s:{"content_type":%s,"data":"YQ=="}}}]}`,
				quote(id), leaf, quote(script), leaf, quote("\u202eevil"), quote(id), quote("text/"+script)), 201)
		}
	}
	c := newMeasured(t, s)
	c.open("#/db/pond?as=table")
	c.logIn("adm", "pass")
	c.says(fmt.Sprintf("%d documents", len(ids)))
	c.says(`\u202egnp.exe`)
	c.shot("table")
	c.accessible()
	c.exec("forget the tasks of axe", "longTasks.splice(0)")
	for _, id := range ids {
		for _, kind := range []string{"doc", "revisions", "attachments"} {
			c.open("#/" + kind + "/pond/" + url.PathEscape(id))
			c.until(`document.querySelector("main nav.tabs a[aria-current]") !== null && !document.body.innerText.includes("Loading")`)
			if eval[bool](c, `document.documentElement.scrollWidth > innerWidth`) {
				t.Errorf("%.40q makes the page wider than the window: %s", id, kind)
			}
			if kind == "revisions" {
				c.says("3 revisions in conflict")
				c.says("Different:")
			}
		}
		c.answers(fmt.Sprintf("%.20q", id))
	}
	c.says("text/<img src=x")
	c.shot("attachments")
	c.accessible()
	if eval[bool](c, `"ran" in window`) {
		t.Error("a script ran")
	}
}

// manyOf is how many of something a test makes: DIVAN_CONSOLE_… says another number.
func manyOf(t *testing.T, name string, ordinary int) int {
	t.Helper()
	text, ok := os.LookupEnv("DIVAN_CONSOLE_" + name)
	if !ok {
		return ordinary
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Many databases and documents are found by the beginning of a name, and gone through page by page.
func TestManyDatabasesAndDocuments(t *testing.T) {
	s := newServer(t)
	databases, docs := manyOf(t, "DATABASES", 300), manyOf(t, "DOCS", 5000)
	var work errgroup.Group
	work.SetLimit(32)
	for i := range databases {
		work.Go(func() error {
			s.call("PUT", fmt.Sprintf("/db%07d?q=1", i), "", 201)
			return nil
		})
	}
	s.call("PUT", "/pond", "", 201)
	const batch = 1000
	for from := 0; from < docs; from += batch {
		work.Go(func() error {
			var body strings.Builder
			for i := from; i < from+batch; i++ {
				fmt.Fprintf(&body, `,{"_id":"%09d","n":%d}`, i, i)
			}
			s.call("POST", "/pond/_bulk_docs", `{"docs":[`+body.String()[1:]+`]}`, 201)
			return nil
		})
	}
	if err := work.Wait(); err != nil {
		t.Fatal(err)
	}
	c := newMeasured(t, s)
	c.open("#/")
	c.logIn("adm", "pass")
	c.says("db0000001")
	c.answers("databases")
	last := fmt.Sprintf("db%07d", databases-1)
	c.fill("Databases whose names begin with", last)
	c.says(last)
	c.answers("one of them")
	c.open("#/db/pond")
	c.says("000000001")
	c.answers("documents")
	c.open(fmt.Sprintf("#/db/pond?as=table&from=%09d", docs-3))
	c.says(fmt.Sprintf("%09d", docs-1))
	c.answers("the last ones")
	c.open("#/changes/pond")
	c.says("pond")
	c.answers("changes")
}
