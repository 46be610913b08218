package migrate

import (
	"slices"
	"strings"
	"sync"
)

// databases are the databases that are brought, with what is known of them.
type databases struct {
	mu struct {
		sync.Mutex
		byName map[string]*database
	}
}

// get returns what is known of a database.
func (d *databases) get(name string) *database {
	d.mu.Lock()
	defer d.mu.Unlock()
	db := d.mu.byName[name]
	if db == nil {
		db = &database{name: name}
		d.mu.byName[name] = db
	}
	return db
}

// all returns the databases by name.
func (d *databases) all() []*database {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]*database, 0, len(d.mu.byName))
	for _, db := range d.mu.byName {
		out = append(out, db)
	}
	slices.SortFunc(out, func(a, b *database) int { return strings.Compare(a.name, b.name) })
	return out
}
