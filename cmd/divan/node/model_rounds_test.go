package node

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"divan/storage/storagetest"
)

// modelRounds runs rounds of a random test of queries on a node, each with a new database,
// until one has failed or the time is over: DIVAN_MODEL_MINUTES, else some seconds. A round
// returns how many questions it has asked. DIVAN_MODEL_SEED=n begins with the round that has
// the seed n, as a failed one tells.
func modelRounds(t *testing.T, prefix string, round func(h *testNode, rng *rand.Rand, name string) (questions int)) {
	t.Helper()
	duration, seed := 3*time.Second, uint64(time.Now().UnixNano())
	if text := os.Getenv("DIVAN_MODEL_MINUTES"); text != "" {
		minutes, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		duration = time.Duration(minutes * float64(time.Minute))
	}
	if text := os.Getenv("DIVAN_MODEL_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	cfg := inMemory(t)
	cfg.Logger = storagetest.FailOnPanics(t) // an hour has gigabytes of lines
	h := buildAs(t, cfg)
	h.run()
	questions, end := 0, time.Now().Add(duration)
	for n := uint64(0); n == 0 || time.Now().Before(end); n++ {
		name := fmt.Sprint(prefix, n)
		questions += round(h, rand.New(rand.NewPCG(seed+n, 0)), name)
		if t.Failed() {
			t.Fatalf("again with DIVAN_MODEL_SEED=%d", seed+n)
		}
		h.want("DELETE", name, "", "200")
	}
	t.Logf("%d questions", questions)
}

// spelled spells the characters beyond 16 bits of a JSON text in one of the ways there are.
func spelled(rng *rand.Rand, text string) string {
	switch rng.IntN(3) {
	case 0:
		return strings.ReplaceAll(text, "\U0001F600", `\ud83d\ude00`)
	case 1:
		return strings.ReplaceAll(text, "\U0001F601", `\uD83D\uDE01`)
	default:
		return text
	}
}

// halved makes of a JSON text, now and then, one with half a character: no JSON text.
func halved(rng *rand.Rand, text string) (half string, ok bool) {
	if rng.IntN(8) > 0 {
		return text, false
	}
	half = strings.Replace(text, "\U0001F600", []string{`\ud83d`, `\ude00`, `\ud83d\ud83d`, `\ude00\ud83d`}[rng.IntN(4)], 1)
	return half, half != text
}
