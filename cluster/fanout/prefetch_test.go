package fanout

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestBeatWhileBatchComes: the caller hears of it while one batch takes long, from the first one
// on, and the limit of a batch counts all the same.
func TestBeatWhileBatchComes(t *testing.T) {
	for limit, want := range map[time.Duration]int{0: 5, time.Minute: 5, 7 * time.Second: 2} {
		synctest.Test(t, func(t *testing.T) {
			beats := 0
			p := prefetch[int]{limit: limit, beat: func() time.Duration { beats++; return 5 * time.Second }, read: func(n *int) (bool, error) {
				<-time.After(21 * time.Second)
				*n = 7
				return false, nil
			}}
			got, err := p.next()
			late := limit > 0 && limit < 21*time.Second
			if (err != nil) != late || err == nil && *got != 7 || beats != want {
				t.Errorf("limit %v: %v, %d beats", limit, err, beats)
			}
			p.close()
		})
	}
}

// TestReadsAhead: how many batches have been read when the caller has taken some. A beat reads
// none that would not have been read without it.
func TestReadsAhead(t *testing.T) {
	beat := func() time.Duration { return time.Second }
	for _, c := range []struct {
		name  string
		limit time.Duration
		beat  func() time.Duration
		want  [4]int // reads behind each turn
	}{
		{"own copy", 0, nil, [4]int{1, 2, 4, 5}},
		{"own copy, beat", 0, beat, [4]int{1, 2, 4, 5}},
		{"other node", time.Minute, nil, [4]int{2, 3, 4, 5}},
		{"other node, beat", time.Minute, beat, [4]int{2, 3, 4, 5}},
	} {
		synctest.Test(t, func(t *testing.T) {
			reads := 0
			p := prefetch[int]{limit: c.limit, beat: c.beat, read: func(n *int) (bool, error) {
				reads++
				*n = reads
				return true, nil
			}}
			defer p.close()
			for i, want := range c.want {
				got, err := p.next()
				if synctest.Wait(); err != nil || *got != i+1 || reads != want {
					t.Errorf("%s: batch %d is %v, %v; %d reads, want %d", c.name, i, *got, err, reads, want)
				}
			}
		})
	}
}

// TestBlockedBeat: the time that a beat waits for a client that reads nothing does not count in
// the limit of a batch.
func TestBlockedBeat(t *testing.T) {
	for batch, late := range map[time.Duration]bool{42 * time.Second: false, time.Hour: true} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			p := prefetch[int]{limit: 10 * time.Second, beat: func() time.Duration {
				if time.Since(began) > 0 && time.Since(began) < 30*time.Second {
					<-time.After(35 * time.Second)
				}
				return 5 * time.Second
			}, read: func(*int) (bool, error) {
				<-time.After(batch)
				return false, nil
			}}
			if _, err := p.next(); (err != nil) != late || late && time.Since(began) != 45*time.Second {
				t.Errorf("%v: %v after %v", batch, err, time.Since(began))
			}
			p.close()
		})
	}
}
