package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

func guessedNames(ctx context.Context, w *world) (string, error) {
	s, err := w.started(ctx)
	if err != nil {
		return "", err
	}
	for _, db := range []string{"/_users"} {
		if _, err := s.call(ctx, http.MethodPut, db, nil, nil); err != nil {
			return "", err
		}
	}
	mary := map[string]any{"name": "mary", "password": "had a little lamb", "roles": []string{}, "type": "user"}
	if err := s.must(ctx, http.MethodPut, "/_users/org.couchdb.user:mary", mary); err != nil {
		return "", err
	}
	if err := w.watch(ctx, s); err != nil {
		return "", err
	}
	login := map[string]string{"name": "mary", "password": "had a little lamb"}
	var guesses, refused atomic.Int64
	var slowest time.Duration
	elsewhere := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, 1)}} // who shares an address shares its turns
	attackers := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 200, DialContext: elsewhere.DialContext}, Timeout: 20 * time.Second}
	w.attacked(ctx, func(ctx context.Context) {
		each(ctx, 141, func(ctx context.Context, i int) {
			if i == 140 { // a user who has a password, and no session yet
				for rest(ctx, 200*time.Millisecond) {
					start := time.Now()
					status, err := s.call(ctx, http.MethodPost, "/_session", login, nil)
					if ctx.Err() != nil {
						return
					}
					slowest = max(slowest, time.Since(start))
					if err != nil || status != http.StatusOK {
						refused.Add(1)
					}
				}
				return
			}
			for n := 0; ctx.Err() == nil; n++ {
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.host+"/_session", http.NoBody)
				if err != nil {
					return
				}
				r.SetBasicAuth(fmt.Sprintf("nobody-%d-%d", i, n), "guess")
				answer, err := attackers.Do(r)
				if err != nil {
					continue
				}
				_ = answer.Body.Close() // its content does not matter
				guesses.Add(1)
			}
		})
	})
	seen := fmt.Sprintf("%d guesses, the slowest login %.2f s, %d refused", guesses.Load(), slowest.Seconds(), refused.Load())
	switch {
	case refused.Load() > 0:
		return seen, fmt.Errorf("a login was refused")
	case slowest > 2*time.Second:
		return seen, fmt.Errorf("a login took %v", slowest)
	}
	return seen, back(ctx, s)
}
