package core_test

import (
	"bytes"
	"net/http"
	"testing"

	"divan/httpapi/core"
)

// pieces is a connection that notes how much each write has.
type pieces struct {
	http.ResponseWriter
	sizes []int
}

func (p *pieces) Write(b []byte) (int, error) {
	p.sizes = append(p.sizes, len(b))
	return p.ResponseWriter.Write(b)
}

// TestAnswersInPieces: a large answer goes to the connection in pieces, all of it, and a small one in one write.
func TestAnswersInPieces(t *testing.T) {
	for _, size := range []int{1, 32 << 10, 32<<10 + 1, 256 << 10} {
		c, w := testCall(t, coreAPI(t, nil), "GET /_up", "")
		p := &pieces{ResponseWriter: w}
		core.AnswerTo(c, p)
		text := bytes.Repeat([]byte("0123456789abcdef."), size/17+1)[:size]
		if n, err := c.Response.Write(text); n != size || err != nil || !bytes.Equal(w.Body.Bytes(), text) {
			t.Errorf("%d of %d bytes are written: %v", n, size, err)
		}
		want := (size + 32<<10 - 1) / (32 << 10)
		if len(p.sizes) != want {
			t.Errorf("%d bytes are written in pieces of %d, want %d pieces", size, p.sizes, want)
		}
	}
}
