package storage

import (
	"errors"
	"time"

	"go.uber.org/zap"

	"divan/storage/diskspace"
)

const (
	rewriteAgain = 30 * time.Second // after one that failed
	rewriteEvery = time.Hour        // at most: what is kept of each takes space
)

// noteDamage looks whether compactions of the instance met a damaged file.
func (h *smallHost) noteDamage(s *smallStores) {
	if s.inst.Health().Unreadable() && h.damage.Note() {
		h.env.log.Error("files of small shards are damaged; they are set right or written anew, that once an hour at most")
	}
}

// tend has damage of the small stores looked after that is known, also when none of them is written
// to.
func (h *smallHost) tend() {
	open, _ := h.cache.lookup(SmallDir)
	damaged := open != nil && (open.base().inst.Health().Unreadable() || h.damage.Met())
	if !damaged || !h.mendDamaged() {
		return
	}
	if s, err := h.acquire(false); err == nil {
		h.cache.release(&s.handle)
	}
}

// mendDamaged has the instance of the small stores be opened anew when that mends what is damaged,
// and reports whether it is.
func (h *smallHost) mendDamaged() bool {
	s, err := h.acquire(false)
	if err != nil {
		return false
	}
	defer h.cache.release(&s.handle)
	h.noteDamage(s)
	return h.damage.Met() && !s.inst.ReadOnly() && errors.Is(h.admit(s), errSmallEnds)
}

// mendOpened writes what can be read of all small stores into new tables, when their compactions
// failed at a damaged file: each write would fail before long, of any of them. Where that fails
// they are read as they are. Nothing is written anew while a table may still be set right. Called
// before others use the instance.
func (h *smallHost) mendOpened(s *smallStores) {
	run := h.rewrite.Load()
	switch {
	case run == nil || s.inst.ReadOnly():
		return
	case h.damage.Met() && s.inst.Health().Righted():
		h.damage.Righted()
		return
	case s.inst.Health().Mends(), !h.damage.Due():
		return
	}
	if err := (*run)(s); err != nil {
		h.damage.Postpone(rewriteAgain)
		h.env.log.Error("files of small shards are damaged, and could not be written anew", zap.Error(err), zap.Duration("retry_in", rewriteAgain))
		return
	}
	h.damage.Mended(rewriteEvery)
	s.inst.Health().NoteRewritten()
}

// spaceToRewrite returns why there is no space for a rewrite: what was there stays.
func spaceToRewrite(space *diskspace.Space, s *smallStores) error {
	return space.SpaceFor(s.inst.FileSize() + diskspace.Kept)
}
