package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// A query is run page by page and explained; the index that it lacks is proposed, made, used and deleted.
func TestMango(t *testing.T) {
	t.Parallel()
	s, c := newPond(t, 120)
	c.press("Query")
	c.says("Run shows the documents that match")
	c.write(`{"selector":{"color":"green","age":{"$gt":3},"weight":12345678901234567890},"limit":20}`)
	c.until("sessionStorage.length === 1")
	c.run("reload", chromedp.Reload())
	if text := c.editorText(); !strings.Contains(text, `"color":"green"`) {
		t.Errorf("after a reload: %s", text)
	}
	c.press("Run")
	c.says("20 results; ")
	c.says("No matching index found, create an index to optimize query time.")
	c.says("12345678901234567890")
	c.shot("result")
	c.accessible()
	c.press("Next page")
	c.until(`location.hash.includes("bookmark")`)
	c.says("16 results; ")
	c.says("frog-118")
	c.press("Explain")
	c.says("every document of the database is read")
	c.press("Create this index …")
	c.until(`document.querySelector("dialog textarea").value === "color\nweight\nage"`)
	c.shot("new")
	c.accessible()
	c.press("Create")
	c.says(`Range of keys: color = "green", weight = 12345678901234567890, age from 3.`)
	c.says("Nothing is filtered afterwards.")
	c.shot("explained")
	c.accessible()
	c.press("Run")
	c.says("20 results; ")
	c.until(`!document.body.innerText.includes("No matching index")`)
	c.write(`{"selector":{"name":{"$regex":"7 of"}},"sort":["name"],"fields":["name","age"]}`)
	c.press("Run")
	c.says("No index exists for this sort")
	c.says("An index of name would fit.")
	c.write(`{"selector":`)
	c.press("Run")
	c.says("invalid UTF-8 JSON")
	c.run("back", chromedp.NavigateBack())
	c.until(`document.querySelector(".editor").shadowRoot.textContent.includes("$regex")`)
	c.exec("delete", `document.querySelector('[aria-label^="Delete index"]').click()`)
	c.says("Documents stay")
	c.accessible()
	c.exec("confirm", `document.querySelector("dialog .danger").click()`)
	c.until(`document.querySelector('[aria-label^="Delete index"]') === null`)
	if n := s.call("GET", "/pond/_index", "", 200)["total_rows"]; fmt.Sprint(n) != "1" {
		t.Errorf("%v indexes are left", n)
	}
}

// An account without rights queries, and is told that it may make no index.
func TestReaderOfMango(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.account("ada", "secret")
	s.call("PUT", "/pond", "", 201)
	s.call("PUT", "/pond/_security", `{"members":{"names":["ada"],"roles":[]}}`, 200)
	s.call("PUT", "/pond/frog", `{"age":4}`, 201)
	c := newScreen(t, s)
	c.open("#/mango/pond?q=" + `%7B%22selector%22%3A%7B%22age%22%3A4%7D%7D`)
	c.logIn("ada", "secret")
	c.says("1 result; ")
	c.press("Create this index …")
	c.press("Create")
	c.says("You are not a db or server admin.")
	c.shot("refused")
}
