package core

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestParseLimit: what is small needs no turn, what is large waits for one, and has it
// until the next read or the end.
func TestParseLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places := newParseLimit()
		for range cap(places) {
			places <- struct{}{}
		}
		small := limitedParse{r: strings.NewReader("0123456789"), places: places, free: 10}
		if text, err := io.ReadAll(&small); err != nil || len(text) != 10 {
			t.Errorf("%q, %v", text, err)
		}
		large := limitedParse{r: strings.NewReader("0123456789"), places: places, free: 5}
		time.AfterFunc(time.Minute, func() { <-places })
		began := time.Now()
		for _, has := range []bool{false, true} {
			if n, err := large.Read(make([]byte, 5)); n != 5 || err != nil || large.has != has {
				t.Errorf("%d, %v; has a turn: %v", n, err, large.has)
			}
		}
		if waited := time.Since(began); waited != time.Minute {
			t.Errorf("waited for %v", waited)
		}
		large.end()
		large.end()
		if len(places) != cap(places)-1 {
			t.Errorf("%d of %d turns are taken", len(places), cap(places))
		}
	})
}
