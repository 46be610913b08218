package small

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestDamageIsDue: a rewrite is due when damage was met, not before the time that the last one set,
// and what the disk does not read is damaged when the disk had refused it five times, not when
// something else was in the way.
func TestDamageIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d Damage
		if d.Due() || d.Met() {
			t.Error("damaged from the start")
		}
		if !d.Note() || d.Note() || !d.Due() {
			t.Error("damage is not noted once, or not due")
		}
		for range 2 * certainAfter {
			if !d.Postpone(time.Minute) || d.Postpone(time.Hour) || d.Due() {
				t.Error("postponed twice, or due all the same")
			}
			<-time.After(time.Minute)
		}
		if !d.Due() || d.Certain() {
			t.Error("a rewrite that was only postponed counts")
		}
		for range certainAfter {
			if d.Certain() {
				t.Error("certain too early")
			}
			d.Unread()
		}
		if !d.Certain() {
			t.Error("never certain")
		}
		d.Mended(time.Hour)
		if d.Met() || d.Certain() || !d.Note() || d.Due() {
			t.Error("after a rewrite it is damaged, or due at once")
		}
		<-time.After(time.Hour)
		if !d.Due() {
			t.Error("an hour later it is not due")
		}
	})
}
