package meta

// Inspection is the result of reading metadata on disk without changing anything.
type Inspection struct {
	Exists   bool     // there are metadata, however damaged
	Problems []string // what is wrong with them
	Missing  []string // names of copies that should be on this node's disk and are not
	Unnamed  []string // those that no database places here
	Alone    bool     // no other node belongs to the cluster; else the newest entries may not be agreed on

	marks *tombstones
}

// Inspect reads metadata of a node that does not run, and compares them with the
// names of the copies on its disk. copyDir is as in Options.
func Inspect(dir, copyDir string, onDisk []string) *Inspection {
	s := look(dir, true)
	out := &Inspection{Exists: !s.empty() || len(s.problems) > 0, Problems: s.problems, Alone: len(s.state.nodes) <= 1, marks: s.marks}
	if !out.Exists {
		return out
	}
	if c, _ := readCopies(copyDir); out.Alone && c != nil && c.state.index > s.last && s.belongs(c.state) {
		out.Problems = append(out.Problems, s.lostEnd(c.state))
	}
	plan := Reconcile(s.state.dbs, string(s.stable[string(nameKey())]), onDisk)
	out.Missing, out.Unnamed = plan.Create, plan.Drop
	return out
}

// IsDeleted is Catalog.IsDeleted as of what was read.
func (i *Inspection) IsDeleted(copyName string) bool { return i.marks.hasCopy(copyName) }
