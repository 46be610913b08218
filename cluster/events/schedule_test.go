package events

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// at is a time of the tests, in milliseconds.
func at(ms int) time.Time { return time.UnixMilli(int64(1_000_000 + ms)) }

func testSchedule() *schedule {
	a := newSchedule()
	a.delays(25*time.Millisecond, 500*time.Millisecond)
	return a
}

// due takes what is due and returns it as one line.
func due(a *schedule, ms int) string { return strings.Join(a.take(at(ms)), " ") }

func TestSchedule(t *testing.T) {
	a := testSchedule()
	if _, ok := a.next(); ok || due(a, 0) != "" {
		t.Error("something is due although nothing happened")
	}
	a.update("updated:a", at(0))
	a.update("updated:a", at(1))
	a.update("updated:b", at(1))
	if got := due(a, 24); got != "" {
		t.Errorf("early: %s", got)
	}
	if got := due(a, 50); got != "updated:a updated:b" {
		t.Errorf("gathered: %s", got)
	}
	a.update("updated:a", at(60)) // written at 50: not before 550
	a.update("updated:c", at(60))
	if got := due(a, 100); got != "updated:c" {
		t.Errorf("beside one that was written: %s", got)
	}
	if next, ok := a.next(); !ok || next.Before(at(550)) || next.After(at(575)) {
		t.Errorf("the second update of a is due at %v", next)
	}
	a.urgent("created:d", at(200)) // takes what waits along
	if got := due(a, 225); got != "updated:a created:d" {
		t.Errorf("urgent: %s", got)
	}
	a.urgent("created:e", at(300))
	a.urgent("deleted:e", at(301))
	a.urgent("created:e", at(302))
	if got := due(a, 325); got != "deleted:e created:e" {
		t.Errorf("made, deleted and made again: %s", got)
	}
	a.again([]string{"deleted:e", "updated:x"}, at(1000))
	if next, ok := a.next(); !ok || !next.Equal(at(1000)) {
		t.Errorf("what failed is due at %v", next)
	}
	if got := due(a, 1000); got != "deleted:e updated:x" {
		t.Errorf("again: %s", got)
	}
	a.urgent("created:f", at(1100))
	a.clear()
	if _, ok := a.next(); ok || due(a, 2000) != "" {
		t.Error("something is left")
	}
}

// In any sequence of events: everything noted is written, in time, an update not twice within the
// delay unless something urgent takes it along, and of the events that make or delete a database
// the last one noted is the last one written.
func TestScheduleProperty(t *testing.T) {
	ids := []string{"updated:a", "updated:b", "created:a", "deleted:a", "created:b"}
	rapid.Check(t, func(t *rapid.T) {
		a := testSchedule()
		noted := map[string]int{}   // when first, of those that wait
		written := map[string]int{} // when last
		lastNoted, lastWritten := "", ""
		now := 0
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now += rapid.IntRange(0, 40).Draw(t, "pause")
			if next, ok := a.next(); ok && !next.After(at(now)) {
				ids := a.take(at(now))
				calm := !slices.ContainsFunc(ids, func(id string) bool { return !isUpdate(id) })
				for _, id := range ids {
					if _, waited := noted[id]; !waited {
						t.Fatalf("%s is written and was not noted", id)
					}
					delete(noted, id)
					if last, ok := written[id]; ok && calm && now-last < 500 {
						t.Fatalf("%s is written at %d and %d", id, last, now)
					}
					written[id] = now
					if !isUpdate(id) {
						lastWritten = id
					}
				}
			}
			id := ids[rapid.IntRange(0, len(ids)-1).Draw(t, "id")]
			if _, waits := noted[id]; !waits {
				noted[id] = now
			}
			if isUpdate(id) {
				a.update(id, at(now))
			} else {
				a.urgent(id, at(now))
				lastNoted = id
			}
			for id, since := range noted {
				if next, ok := a.next(); !ok || next.After(at(since+25+500+25)) && isUpdate(id) {
					t.Fatalf("%s waits since %d and is due at %v", id, since, next)
				}
			}
		}
		for _, id := range a.take(at(now + 2000)) {
			delete(noted, id)
			if !isUpdate(id) {
				lastWritten = id
			}
		}
		if len(noted) > 0 || lastNoted != lastWritten {
			t.Fatalf("%v are never written; %s was last, %s is written last", noted, lastNoted, lastWritten)
		}
		if len(a.waiting) != 0 || len(a.due) != 0 || slices.Contains(a.waiting, "") {
			t.Fatal("the schedule is not empty")
		}
	})
}

func TestScheduleIsBounded(t *testing.T) {
	a := testSchedule()
	for i := range maxWaiting + 10 {
		a.update("updated:"+suffixed(i), at(0))
	}
	a.urgent("created:x", at(0))
	if len(a.waiting) != maxWaiting || len(a.due) != maxWaiting || !a.hurry.IsZero() {
		t.Errorf("%d wait", len(a.waiting))
	}
}

func suffixed(i int) string {
	return string([]byte{byte('a' + i%26), byte('a' + i/26%26), byte('a' + i/676%26), byte('a' + i/17576)})
}
