package bandwidth

import (
	"testing"
	"time"
)

func TestBandwidth(t *testing.T) {
	p := &Limit{}
	now := time.Unix(1000, 0)
	var wait time.Duration
	for range 10 {
		wait = p.take(now, 50*time.Millisecond)
	}
	if wait != 400*time.Millisecond { // half a second of transfers, less the burst
		t.Errorf("the tenth waits %v", wait)
	}
	if wait := p.take(now.Add(time.Hour), 50*time.Millisecond); wait > 0 {
		t.Errorf("after an hour at rest: %v", wait)
	}
}
