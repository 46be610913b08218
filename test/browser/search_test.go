package browser

import (
	"fmt"
	"testing"
)

// A search index is searched page by page, counted, narrowed, highlighted; what the server does not understand is told.
func TestSearch(t *testing.T) {
	t.Parallel()
	s, c := newPond(t, 60)
	s.call("PUT", "/pond/_design/frogs", `{"indexes":{"all":{"index":"function (doc) { index('default', doc.name, {store: true}); `+
		`index('color', doc.color, {facet: true, store: true}); index('age', doc.age, {facet: true}); }"}},
		"nouveau":{"all":{"index":"function (doc) { index('text', 'name', doc.name, {store: true}); index('string', 'color', doc.color); }"}}}`, 201)
	s.call("PUT", "/pond/script", `{"name":"a frog <img src=x onerror=alert(1)> <em>of</em> others","color":"red","age":1}`, 201)
	c.press("Views")
	c.press("all")
	c.until(`location.hash.startsWith("#/search/pond/frogs/all")`)
	c.open("#/search/pond/frogs/all")
	c.says("finds all")
	c.fill("Query", "frog")
	c.fill("Count by", "color")
	c.fill("Highlight", "default")
	c.press("Search")
	c.says("61 documents match")
	c.until(`[...document.querySelectorAll("mark")].some((m) => m.innerText === "frog")`)
	c.shot("found")
	c.accessible()
	c.press("Next page")
	c.until(`location.hash.includes("bookmark")`)
	c.press("red")
	c.says("1 document matches")
	c.says("<em>of</em> others")
	c.says("color = red")
	if n := eval[int](c, `document.querySelectorAll(".hits em, .hits img").length`); n != 0 {
		t.Errorf("%d elements were made of a document's text", n)
	}
	c.accessible()
	c.exec("take the value away", `document.querySelector("a.small").click()`)
	c.says("61 documents match")
	c.fill("Ranges", `{"age": {"young": "[0 TO 2]", "old": "[3 TO 99]"}}`)
	c.press("Search")
	c.until(`/young \d+\s+old \d+|old \d+\s+young \d+/.test(document.querySelector(".counts").innerText)`)
	c.accessible()
	c.fill("Ranges", `{"age": `)
	c.press("Search")
	c.says("The ranges are not JSON.")
	c.fill("Ranges", "")
	c.fill("Query", "frog AND (")
	c.press("Search")
	c.says("Cannot parse")
	c.shot("refused")
	c.open("#/search/pond/frogs/all?engine=nouveau&" + fmt.Sprintf("q=%s&counts=color&limit=10", "name%3Afrog"))
	c.says("61 documents match")
	c.says("brown")
	c.press("Next page")
	c.until(`document.querySelectorAll(".hits > li").length === 10 && location.hash.includes("bookmark")`)
	c.shot("nouveau")
	c.accessible()
}
