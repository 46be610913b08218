package memory

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

func fixed(n int64) *Budget { return NewBudget(func() int64 { return n }) }

// Large takers leave a part to small ones, and all of it is back when all have ended.
func TestLargeHolds(t *testing.T) {
	b := fixed(10 << 20)
	shares := ForRequests(b)
	large, second, little := shares.Hold(Name{Account: "a"}), shares.Hold(Name{Account: "b"}), shares.Hold(Name{Account: "a"})
	if ok, never := large.Try(7 << 20); ok || !never {
		t.Errorf("more than there is for one: %v, never %v", ok, never)
	}
	if ok, _ := large.Try(6 << 20); !ok {
		t.Error("a large one gets nothing")
	}
	if ok, never := second.Try(2 << 20); ok || never {
		t.Errorf("the part of small ones is taken: %v, never %v", ok, never)
	}
	if ok, _ := little.Try(1 << 20); !ok {
		t.Error("a small one of the same account gets nothing")
	}
	if ok, _ := second.Try(9 << 17); !ok {
		t.Error("a large one of another account gets nothing")
	}
	if want := int64(7<<20 + 9<<17); b.Used() != want {
		t.Errorf("%d bytes are taken, want %d", b.Used(), want)
	}
	large.Release()
	little.Release()
	second.Release()
	large.Release()
	if b.Used() != 0 || b.Reclaimable() != 0 { // 6 MB are none that the collector has to be told of
		t.Errorf("%d bytes are left", b.Used())
	}
	if large = ForRequests(fixed(100 << 20)).Hold(Name{}); large.Held() != 0 {
		t.Errorf("%d bytes of nothing", large.Held())
	}
	if ok, _ := large.Try(10 << 20); !ok {
		t.Error("nothing of a new budget")
	}
}

// Requests are fair: when some accounts have holds of any sizes, grown in any steps, one more
// account gets its part of what is left, and a lone account gets most of the budget. What is
// counted adds up.
func TestRequestsAreFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const limit = 100 << 20
		b := fixed(limit)
		shares := ForRequests(b)
		var holds []*Hold
		total := func(over int64) (sum int64) {
			for _, h := range holds {
				if h.held > over {
					sum += h.held
				}
			}
			return sum
		}
		hostile := 1 + rapid.IntRange(0, 1).Draw(t, "accounts")
		t.Repeat(map[string]func(*rapid.T){
			"new": func(t *rapid.T) {
				h := shares.Hold(Name{Account: strconv.Itoa(rapid.IntRange(1, hostile).Draw(t, "account"))})
				holds = append(holds, &h)
			},
			"grow": func(t *rapid.T) {
				if len(holds) > 0 {
					h := holds[rapid.IntRange(0, len(holds)-1).Draw(t, "hold")]
					for n := int64(rapid.IntRange(1, 30<<20).Draw(t, "size")); n > 0; n /= 2 {
						if ok, _ := h.Try(n); ok {
							break
						}
					}
				}
			},
			"shrink": func(t *rapid.T) {
				if len(holds) > 0 {
					h := holds[rapid.IntRange(0, len(holds)-1).Draw(t, "hold")]
					h.Shrink(int64(rapid.IntRange(0, int(h.held)).Draw(t, "size")))
				}
			},
			"": func(t *rapid.T) {
				if n, large := total(0), total(small); n != b.Used() || n != shares.mu.used || large != b.mu.large {
					t.Fatalf("%d bytes are held, %d counted; %d by large ones, %d counted", n, b.Used(), large, b.mu.large)
				}
				part := int64(limit) * 60 / 100
				for range hostile {
					part = part / 5
				}
				innocent := shares.Hold(Name{Address: "1"}) // the account of that name is another owner
				if ok, _ := innocent.Try(part); !ok {
					t.Fatalf("an account gets no %d bytes while others hold %d", part, total(0))
				}
				innocent.Release()
			},
		})
		for _, h := range holds {
			h.Release()
		}
		if alone := shares.Hold(Name{Account: "1"}); b.Used() != 0 || b.mu.large != 0 || len(shares.mu.owners) != 0 {
			t.Fatalf("%d bytes are left", b.Used())
		} else if ok, _ := alone.Try(limit / 100 * 60); !ok {
			t.Fatal("a lone account does not get most of it")
		}
	})
}

// Shares are never more than half of a budget, an owner has no more than what is left to
// the others, one that holds nothing always gets a small piece as long as there are few
// owners, and what is held adds up.
func TestShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const limit, owners = 200_000, 4
		s := ForReplications(fixed(limit))
		held := map[string]int64{}
		var holds []*Hold
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				name := strconv.Itoa(rapid.IntRange(1, owners).Draw(t, "owner"))
				h := s.Owner(name).Hold()
				size := int64(rapid.IntRange(1, 60_000).Draw(t, "size"))
				used := s.budget.Used()
				ok, never := s.take(Name{Account: name}, 0, size)
				if never != (2*size > limit/2) {
					t.Fatalf("never %v for %d bytes", never, size)
				}
				if fits := held[name]+size <= limit/2-used-size; ok != fits {
					t.Fatalf("taken %v: %d bytes for one that holds %d of %d", ok, size, held[name], used)
				}
				if ok {
					h.held = size
					held[name] += size
					holds = append(holds, &h)
				}
			},
			"give": func(t *rapid.T) {
				if len(holds) > 0 {
					i := rapid.IntRange(0, len(holds)-1).Draw(t, "hold")
					held[holds[i].owner.Account] -= holds[i].held
					holds[i].Release()
					holds = append(holds[:i], holds[i+1:]...)
				}
			},
			"": func(t *rapid.T) {
				var sum int64
				for _, n := range held {
					sum += n
				}
				if sum != s.budget.Used() || sum > limit/2 {
					t.Fatalf("%d bytes are held, %d counted", sum, s.budget.Used())
				}
				const piece = limit / 2 >> owners // each that came before may have taken half of what was left
				for n := 1; n <= owners; n++ {
					if name := strconv.Itoa(n); held[name] == 0 {
						if ok, _ := s.take(Name{Account: name}, 0, piece); !ok {
							t.Fatalf("owner %s gets nothing while %d bytes are held", name, sum)
						}
						s.give(Name{Account: name}, piece, piece)
					}
				}
			},
		})
		for _, h := range holds {
			h.Release()
		}
		if s.budget.Used() != 0 || s.mu.used != 0 || len(s.mu.owners) != 0 {
			t.Errorf("%d bytes are left", s.budget.Used())
		}
	})
}

// Who finds no memory waits for it, for some time.
func TestHoldWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := ForReplications(fixed(100_000))
		first, second := s.Owner("a").Hold(), s.Owner("a").Hold()
		if err := errors.Join(first.Take(t.Context(), 12_000), first.Take(t.Context(), 12_000)); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := second.Take(t.Context(), 12_000); !errors.Is(err, ErrFull) || time.Since(began) < patience || time.Since(began) > patience+longestWait {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if err := second.Take(t.Context(), 26_000); !errors.Is(err, ErrNever) {
			t.Error(err)
		}
		shrunk := make(chan struct{})
		time.AfterFunc(3*time.Second, func() {
			first.Shrink(12_000)
			close(shrunk)
		})
		began = time.Now()
		if err := second.Take(t.Context(), 12_000); err != nil || time.Since(began) < 3*time.Second || time.Since(began) > 4*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := second.Take(ended, 12_000); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		<-shrunk
		first.Release()
		second.Release()
		if n := s.budget.Used(); n != 0 {
			t.Errorf("%d bytes are left", n)
		}
		var free *Shares
		if h := free.Owner("x").Hold(); h.Take(t.Context(), 1<<40) != nil {
			t.Error("one without shares is bounded")
		}
	})
}
