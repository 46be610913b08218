package storage

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"go.uber.org/zap"

	"divan/storage/fault"
	"divan/storage/instance"
	"divan/storage/marks"
)

// ErrLost is the cause of an error that says that a store was there once and is
// gone, although it was not dropped. Compare with errors.Is.
var ErrLost = errors.New("the store was here and is gone")

// errLost returns the error for a store that is lost. name is below shards.
func errLost(name string) error {
	r, _, _ := strings.Cut(strings.TrimPrefix(name, shardsDir+"/"), "/")
	return fault.Wrap(fault.Unavailable, "The files of the shard "+r+" are missing.", ErrLost)
}

// Losses tells which stores were made here and are gone, or have lost what they held. It is safe for
// concurrent use.
type Losses struct {
	env      *environment
	cache    *storeCache
	catalog  *Catalog
	made     marks.Made
	contents *lostContents
}

// Lost reports whether a store, or its content, was here once and is gone, although it was
// not dropped.
func (l *Losses) Lost(name string) bool {
	return !l.catalog.Has(name) && (l.made.Has(name) || l.contents.has(name))
}

// NeverMade reports whether a store is not here and never was: a node that is killed
// while it makes a database leaves that. False also where it is not known which stores
// were here.
func (l *Losses) NeverMade(name string) bool {
	return l.made.Any() && !l.made.Has(name) && !l.catalog.Has(name)
}

// NoteMade notes that stores are here, of those that were listed. What is not
// noted is not missed when it goes.
func (l *Losses) NoteMade(names []string) error {
	for _, name := range names {
		if err := l.made.Note(name); err != nil {
			return instance.DiskError("note which stores are here", err)
		}
	}
	return nil
}

// Forget ends the missing of a store that is lost, so that it can be made
// again, empty. What is left of its directory is set aside.
func (l *Losses) Forget(name string) error {
	en, err := l.cache.addBusy(name)
	if err != nil {
		return err
	}
	defer l.cache.remove(en)
	switch _, _, err := l.env.readIdentity(name); {
	case fault.Is(err, fault.NoCopy):
		if _, err := l.env.o.FS.Stat(l.env.path(name)); err == nil {
			if err := l.env.setAside(name); err != nil {
				return err
			}
			l.env.dirs.RemoveParents(name)
		}
	default: // it is there, or that is not known
		return errors.Join(fault.New(fault.Exists, "file_exists"), err)
	}
	l.made.Forget(name)
	return nil
}

// ContentLost reports whether a store has its directory, and has lost what it held.
func (l *Losses) ContentLost(name string) bool { return l.contents.has(name) }

// Contents returns the stores that ContentLost is true of, as far as is known, sorted.
func (l *Losses) Contents() []string {
	l.contents.mu.Lock()
	defer l.contents.mu.Unlock()
	return slices.Sorted(maps.Keys(l.contents.names))
}

// News has something when there are more of them.
func (l *Losses) News() <-chan struct{} { return l.contents.news }

// noteContent notes that a store cannot be opened because what it held is lost, and returns what is
// said of it.
func (l *Losses) noteContent(name string, inst *instance.Instance, err error) error {
	switch {
	case l.env.o.ReadOnly || inst.ReadOnly() || !fault.Is(err, fault.Corruption):
		return err
	case inst.Health().Mends():
		return fault.Wrap(fault.Unavailable, "A damaged file of the shard is set right.", err)
	}
	if l.contents.note(name) {
		l.env.log.Error("what a shard had cannot be read", zap.String("store", name), zap.Error(err))
	}
	r, _, _ := strings.Cut(strings.TrimPrefix(name, shardsDir+"/"), "/")
	return fault.Wrap(fault.Unavailable, "The shard "+r+" cannot be read. "+fault.Reason(err), errors.Join(ErrLost, err))
}
