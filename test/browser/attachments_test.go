package browser

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
)

// pictureOf is a PNG of some pixels.
func pictureOf(t *testing.T) string {
	t.Helper()
	var out bytes.Buffer
	if err := png.Encode(&out, image.NewGray(image.Rect(0, 0, 40, 30))); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// silence is a WAV file of a second.
func silence() string {
	const rate = 8000
	out := []byte("RIFF")
	out = binary.LittleEndian.AppendUint32(out, 36+rate)
	out = append(out, "WAVEfmt "...)
	out = binary.LittleEndian.AppendUint32(out, 16)
	for _, v := range []uint16{1, 1, rate, 0, rate, 0, 1, 8} {
		out = binary.LittleEndian.AppendUint16(out, v)
	}
	out = binary.LittleEndian.AppendUint32(append(out, "data"...), rate)
	return string(append(out, bytes.Repeat([]byte{128}, rate)...))
}

// attach stores an attachment of the document frog.
func attach(s *server, name, contentType, content string) {
	s.t.Helper()
	rev := s.call("GET", "/pond/frog", "", 200)["_rev"]
	s.callAs("PUT", fmt.Sprintf("/pond/frog/%s?rev=%s", name, rev), contentType, content, 201)
}

// newAttachments shows the attachments of the document frog.
func newAttachments(t *testing.T) (s *server, c *screen) {
	t.Helper()
	s = newServer(t)
	s.call("PUT", "/pond", "", 201)
	s.call("PUT", "/pond/frog", `{"legs":4}`, 201)
	c = newScreen(t, s)
	return s, c
}

// Images, sound, texts and JSON are shown; HTML and SVG as texts, and nothing of them runs.
func TestAttachmentsAreShown(t *testing.T) {
	t.Parallel()
	s, c := newAttachments(t)
	const html = `<!doctype html><script>window.ran = 1</script><p>shown as text`
	const svg = `<svg xmlns="http://www.w3.org/2000/svg"><script>window.ran = 1</script></svg>`
	attach(s, "picture.png", "image/png", pictureOf(t))
	attach(s, "sound.wav", "audio/wav", silence())
	attach(s, "page.html", "text/html", html)
	attach(s, "drawing.svg", "image/svg+xml", svg)
	attach(s, "false.png", "image/png", html)
	attach(s, "data.json", "application/json", `{"big":12345678901234567890}`)
	attach(s, "long.txt", "text/plain", strings.Repeat("line with \u202e\n", 20_000))
	attach(s, "program.bin", "application/octet-stream", "\x00\x01")
	c.open("#/doc/pond/frog")
	c.logIn("adm", "pass")
	c.press("Attachments: 8")
	c.says("picture.png")
	c.says("image/svg+xml")
	c.accessible()
	c.press("picture.png")
	c.until(`document.querySelector(".looked-at img")?.naturalWidth === 40`)
	c.shot("image")
	c.accessible()
	c.press("sound.wav")
	c.until(`document.querySelector(".looked-at audio")?.duration === 1`)
	c.press("page.html")
	c.until(`document.querySelector(".looked-at pre")?.textContent === ` + quote(html))
	c.press("drawing.svg")
	c.until(`document.querySelector(".looked-at pre")?.textContent === ` + quote(svg))
	c.press("false.png")
	c.says("The browser cannot show this image.")
	c.press("data.json")
	c.until(`document.querySelector(".looked-at .editor")?.shadowRoot?.textContent.includes('"big": 12345678901234567890')`)
	c.shot("json")
	c.accessible()
	c.press("long.txt")
	c.says("These are the first 131 KB of 280 KB.")
	c.says(`line with \u202e`)
	c.press("program.bin")
	c.says("It can be downloaded.")
	c.accessible()
	if eval[bool](c, `"ran" in window`) {
		t.Error("a script of an attachment ran")
	}
	c.open("#/attachments/pond/_local%2Fone")
	c.says("Local documents have no attachments.")
}

// files is an expression of JavaScript for a list of files.
func files(of ...string) string {
	return `(() => { const d = new DataTransfer(); for (const f of [` + strings.Join(of, ",") + `]) d.items.add(f); return d; })()`
}

// Several files are stored one after the other; one that takes the place of another asks first.
func TestAttachmentsAreAdded(t *testing.T) {
	t.Parallel()
	s, c := newAttachments(t)
	attach(s, "old.txt", "text/plain", "before")
	c.open("#/attachments/pond/frog")
	c.logIn("adm", "pass")
	c.says("old.txt")
	drop := files(`new File(["one"], "<script>.txt", {type: "text/plain"})`, `new File(["after"], "old.txt")`, `new File([], "dir/\u202eempty")`)
	c.exec("drop", `document.body.dispatchEvent(new DragEvent("drop", {dataTransfer: `+drop+`, bubbles: true, cancelable: true}))`)
	c.says("An attachment of this name is there already.")
	c.until(`document.querySelectorAll("tbody tr").length === 3`)
	c.shot("asked")
	c.accessible()
	if old := s.call("GET", "/pond/frog", "", 200)["_attachments"].(map[string]any)["old.txt"].(map[string]any)["content_type"]; old != "text/plain" {
		t.Errorf("it was replaced without a question: %v", old)
	}
	c.press("Replace it")
	c.until(`[...document.querySelectorAll("tbody tr")].some((r) => r.innerText.includes("old.txt") && r.innerText.includes("application/octet-stream"))`)
	s.call("PUT", "/pond/frog", fmt.Sprintf(`{"_rev":%s,"_attachments":%s}`,
		quote(s.call("GET", "/pond/frog", "", 200)["_rev"]), quote(s.call("GET", "/pond/frog", "", 200)["_attachments"])), 201)
	choose := files(`new File(["{}"], "more.json", {type: "application/json"})`)
	c.exec("choose", `{ const i = document.querySelector("input[type=file]"); i.files = `+choose+`.files; i.dispatchEvent(new Event("change", {bubbles: true})); }`)
	c.says("Somebody has changed the document meanwhile.")
	c.shot("conflict")
	c.accessible()
	c.press("Try again")
	c.until(`document.querySelectorAll("tbody tr").length === 4`)
	atts := s.call("GET", "/pond/frog", "", 200)["_attachments"].(map[string]any)
	if got, ok := atts["more.json"].(map[string]any); !ok || got["length"] != json.Number("2") || got["content_type"] != "application/json" {
		t.Errorf("stored %v", atts)
	}
	c.exec("delete", `[...document.querySelectorAll("tbody tr")].find((r) => r.innerText.includes("old.txt")).querySelector("button").click()`)
	c.says("is deleted. The document gets a new revision without it.")
	c.accessible()
	c.exec("confirm", `document.querySelector("dialog .danger").click()`)
	c.until(`document.querySelectorAll("tbody tr").length === 3`)
}

// networkConditions are the parameters of the command that bounds speeds, in bytes a second; -1: they are not bounded.
type networkConditions struct {
	Offline            bool    `json:"offline"`
	Latency            float64 `json:"latency"`
	DownloadThroughput float64 `json:"downloadThroughput"`
	UploadThroughput   float64 `json:"uploadThroughput"`
}

func (c *screen) uploadSpeed(bytesPerSecond float64) {
	c.t.Helper()
	limit := cdp.Command[networkConditions, cdp.Empty]{Method: "Network.emulateNetworkConditions"}
	c.run("bound the speed of uploads", command(limit, networkConditions{DownloadThroughput: -1, UploadThroughput: bytesPerSecond}))
}

// A file on its way shows how far it is, and can be cancelled; a refusal is shown in the server's words.
func TestUploadIsCancelled(t *testing.T) {
	t.Parallel()
	s, c := newAttachments(t)
	c.open("#/attachments/pond/frog")
	c.logIn("adm", "pass")
	c.says("No attachments yet.")
	c.uploadSpeed(400_000)
	drop := func(file string) {
		c.exec("drop", `document.body.dispatchEvent(new DragEvent("drop", {dataTransfer: `+files(file)+`, bubbles: true, cancelable: true}))`)
	}
	drop(`new File([new Uint8Array(60_000_000)], "large.bin")`)
	c.until(`document.querySelector("progress")?.value > 0`)
	c.shot("progress")
	c.accessible()
	c.press("Cancel")
	c.until(`document.querySelector("progress") === null`)
	if doc := s.call("GET", "/pond/frog", "", 200); doc["_attachments"] != nil {
		t.Errorf("stored: %v", doc)
	}
	c.uploadSpeed(-1)
	drop(`new File(["x"], "_mine")`)
	c.says("Attachment name '_mine' starts with prohibited character '_'")
	c.otherTab("adm", "pass")
	s.account("bob", "secret")
	c.otherTab("bob", "secret")
	drop(`new File(["x"], "mine")`)
	c.says("Another tab has logged in as “bob” meanwhile")
}
