package meta

import "slices"

// Plan lists the changes after which the disk of a node agrees with the map.
type Plan struct {
	Create []string // names of copies that are missing, sorted
	Drop   []string // names of copies that no database places here, sorted
}

// Reconcile compares the copies that the databases place on a node with the
// names of the copies on its disk. It decides only: a copy to be dropped may
// be kept for a while, in case the map was wrong.
func Reconcile(dbs Databases, node string, onDisk []string) Plan {
	var p Plan
	wanted := map[string]bool{}
	for db := range dbs.All() {
		for _, name := range db.CopiesOn(node) {
			wanted[name] = true
		}
	}
	for _, name := range onDisk {
		if !wanted[name] {
			p.Drop = append(p.Drop, name)
		}
		delete(wanted, name)
	}
	for name := range wanted {
		p.Create = append(p.Create, name)
	}
	slices.Sort(p.Create)
	slices.Sort(p.Drop)
	return p
}
