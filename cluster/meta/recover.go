package meta

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"

	"divan/cluster/meta/checksum"
	"divan/cluster/meta/dbsetting"
	"divan/cluster/meta/metapb"
	"divan/shard/ring"
)

// DiskCopy is a copy that lies on this node's disk.
type DiskCopy struct {
	Name        string
	ID          uint64 // that its directory tells
	Partitioned bool
}

// Remake says from what the metadata of a lone node are to be made again.
type Remake struct {
	Dir     string // of the metadata; what is there is kept beside
	CopyDir string // as in Options
	Self    string // the node's name
	Copies  []DiskCopy
}

// Remade is the result of Recover.
type Remade struct {
	Databases int
	Aside     string   // where the metadata lie that were there; empty: there were none
	Notes     []string // what could not be known, and what was done instead
}

// adminOnly is the security object of a database whose own is not known.
const adminOnly = `{"members":{"roles":["_admin"]},"admins":{"roles":["_admin"]}}`

// ErrSound is the error of Recover when there is nothing to recover.
var ErrSound = errors.New("the metadata are in order")

// remaking is a Remake at work.
type remaking struct {
	Remake
	Remade
	base  *snapshot
	term  uint64
	sound bool // what is there is in order
	added int  // databases that only their shards know
}

func (r *remaking) notef(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// Recover makes the metadata of a lone node again: from what can be read of them,
// from the copies that were kept of them, and from the names of the shards on
// disk. Metadata that are in order get the databases that only their shards
// know. It changes nothing else. A crash before it ends leaves what was there.
func Recover(o Remake) (*Remade, error) {
	r := &remaking{Remake: o}
	if err := r.findBase(); err != nil {
		return nil, err
	}
	if err := r.alone(); err != nil {
		return nil, err
	}
	r.addFromDisk()
	r.identifyCopies()
	if r.sound && r.added == 0 {
		return nil, fmt.Errorf("%w: %s", ErrSound, r.Dir)
	}
	for db := range r.base.state.dbs.All() {
		r.Databases++
		r.compare(db)
	}
	if err := r.write(); err != nil {
		return nil, fmt.Errorf("make the metadata again: %w", err)
	}
	return &r.Remade, nil
}

// findBase takes the newest state that can be read.
func (r *remaking) findBase() error {
	s := look(r.Dir, true)
	kept, _ := readCopies(r.CopyDir)
	if kept != nil && len(s.stable) > 0 && !s.belongs(kept.state) && s.stable[string(groupIDKey())] != nil {
		r.notef("the copies of the metadata in %s are of another node or cluster and were not used", r.CopyDir)
		kept = nil
	}
	r.sound = len(s.problems) == 0 && !s.empty() && (kept == nil || kept.state.index <= s.last)
	switch {
	case s.empty() && kept == nil && len(r.Copies) == 0:
		return errors.New("nothing is left to make metadata from: neither shards nor a copy of the metadata")
	case r.sound || s.state.uuid != "" && (kept == nil || s.state.index > kept.state.index):
		r.base = &snapshot{state: s.state, tombstones: s.marks}
	case kept != nil: // what the log has behind it
		now := applyEntries(kept.state, kept.tombstones, s.entries, kept.state.index+1)
		r.base = &snapshot{state: now, tombstones: kept.tombstones}
	default:
		fresh := newState()
		fresh.uuid, fresh.secret = randomHex(), randomHex()
		r.base = &snapshot{state: fresh, tombstones: newTombstones()}
		r.notef("no copy of the metadata was found. Lost are: security objects, limits, administrators and other settings " +
			"that were made through HTTP, and the uuid of the server; sessions end")
	}
	if len(s.problems) > 0 && !s.empty() {
		r.notef("the metadata were damaged (%s); what they are made of is as of entry %d. A change that was acknowledged within about a "+
			"second before the end of the node may be missing", s.problems[0], r.base.state.index)
	}
	r.term = max(r.base.state.term, s.term())
	return nil
}

// alone refuses the metadata of a node that belongs to others, and gives the
// node its name.
func (r *remaking) alone() error {
	s := r.base.state
	for name := range s.nodes {
		switch {
		case len(s.nodes) > 1:
			return fmt.Errorf("this node belongs to a cluster with %s; those have the metadata: move %s away and start the node",
				strings.Join(others(s.sortedNodes(), r.Self), ", "), r.Dir)
		case name != r.Self:
			return fmt.Errorf("the metadata are of node %s, not of %s: say so with --name %s", name, r.Self, name)
		}
	}
	if len(s.nodes) == 0 {
		s.nodes = map[string]Node{r.Self: {Name: r.Self}}
	}
	return nil
}

func others(nodes []Node, self string) []string {
	var out []string
	for _, n := range nodes {
		if n.Name != self {
			out = append(out, n.Name)
		}
	}
	return out
}

// found is a database as its directories tell of it.
type found struct {
	name        string
	created     int64
	ranges      []ring.Range
	partitioned bool
}

// addFromDisk adds the databases that only their directories know.
func (r *remaking) addFromDisk() {
	all := map[string]*found{} // by what their copies have in common
	for _, c := range r.Copies {
		rng, name, suffix, ok := ring.ParseCopyName(c.Name)
		created, err := strconv.ParseInt(suffix, 10, 64)
		if !ok || err != nil || suffixOf(created) != suffix || ring.ValidateName(name) != nil {
			r.notef("%s: not the name of a shard; left as it is", c.Name)
			continue
		}
		tail := ring.CopyTail(c.Name)
		if all[tail] == nil {
			all[tail] = &found{name: name, created: created}
		}
		all[tail].ranges = append(all[tail].ranges, rng)
		all[tail].partitioned = all[tail].partitioned || c.Partitioned
		r.base.tombstones.floor = max(r.base.tombstones.floor, created)
	}
	var list []*found
	for _, f := range all {
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b *found) int {
		return cmp.Or(strings.Compare(a.name, b.name), cmp.Compare(b.created, a.created)) // the newest of a name first
	})
	for _, f := range list {
		r.add(f)
	}
}

func (r *remaking) add(f *found) {
	s := r.base.state
	known, ok := s.dbs.Get(f.name)
	switch {
	case ok && known.Created == f.created:
		return
	case r.base.tombstones.last[f.name] >= f.created:
		r.notef("%s of %d: was deleted; its shards are left as they are", f.name, f.created)
		return
	case ok && known.Created > f.created:
		r.notef("%s of %d: a newer database has the name; the shards of this one are left as they are", f.name, f.created)
		return
	}
	ranges := ring.Complete(f.ranges)
	if ranges == nil {
		r.notef("%s of %d: its ranges do not fit together; its shards are left as they are", f.name, f.created)
		return
	}
	db := &Database{
		Name: f.name, Created: f.created, Suffix: suffixOf(f.created), ID: NewDatabaseID(), N: 1, Partitioned: f.partitioned,
		Security: []byte(adminOnly), Settings: dbsetting.Standard(),
	}
	for _, rng := range ranges {
		db.Shards = append(db.Shards, ring.Shard{Range: rng, Copies: ring.CopiesOn(r.Self)})
	}
	s.dbs = s.dbs.with(db)
	r.added++
	r.notef("%s: known from its shards only (q=%d). Its security object is not known: it is for administrators only now; "+
		"limits are the default", f.name, len(ranges))
}

// identifyCopies gives new ids to copies that only the disk knows, and to those that are newer
// there than in what the metadata are made of, the ones that their directories tell.
func (r *remaking) identifyCopies() {
	there := make(map[string]uint64, len(r.Copies))
	for _, c := range r.Copies {
		there[c.Name] = c.ID
		r.base.state.index = max(r.base.state.index, ring.CommandOf(c.ID))
	}
	s := r.base.state
	var dbs []*Database
	for db := range s.dbs.All() {
		next := *db
		told := func(rng ring.Range) uint64 { return there[db.CopyName(rng)] }
		next.Shards, next.Generation = ring.IdentifyAs(db.Shards, r.Self, told, ring.IDsOf(s.index+1)), max(db.Generation, 1)
		dbs = append(dbs, &next)
	}
	s.dbs = databasesOf(dbs)
}

// compare tells which shards of a database are missing.
func (r *remaking) compare(db *Database) {
	for _, name := range db.CopiesOn(r.Self) {
		if !slices.ContainsFunc(r.Copies, func(c DiskCopy) bool { return c.Name == name }) {
			r.notef("%s: %s is not there; requests for that range are refused until it is, or its loss is accepted", db.Name, name)
		}
	}
}

// write makes the new metadata beside the old ones and puts them in their place.
func (r *remaking) write() error {
	s := r.base.state
	s.index++
	s.term = r.term + 1
	kept := copier{dir: r.CopyDir}
	if _, at := readCopies(r.CopyDir); at >= 0 {
		kept.next = 1 - at
	}
	if err := kept.write(r.base); err != nil { // what can be read of the old ones counts only while they are there
		return err
	}
	fresh := r.Dir + ".new"
	if err := os.RemoveAll(fresh); err != nil { // of a recovery that did not end
		return err
	}
	if err := os.MkdirAll(fresh, 0o700); err != nil {
		return err
	}
	if err := r.fill(fresh); err != nil {
		return err
	}
	_ = os.Remove(r.Dir) // when it is empty
	if exists(r.Dir) {
		r.Aside = r.Dir + ".damaged"
		for n := 1; exists(r.Aside); n++ {
			r.Aside = r.Dir + ".damaged." + strconv.Itoa(n)
		}
		if err := os.Rename(r.Dir, r.Aside); err != nil {
			return err
		}
	}
	if err := os.Rename(fresh, r.Dir); err != nil {
		return err
	}
	return syncDir(filepath.Dir(r.Dir))
}

// fill writes metadata that begin with a snapshot.
func (r *remaking) fill(dir string) (err error) {
	bolt, err := raftboltdb.New(boltOptions(filepath.Join(dir, logFile)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bolt.Close()) }()
	store, err := checksum.New(bolt)
	if err != nil {
		return err
	}
	s := r.base.state
	identity := &metapb.Init{Uuid: s.uuid, Secret: s.secret}
	err = errors.Join(store.Set(nameKey(), []byte(r.Self)), store.Set(identityKey(), encode(identity)),
		store.Set(groupIDKey(), []byte(groupIDOf(identity))), store.SetUint64(termKey(), s.term), store.SetUint64(madeKey(), s.index))
	if err != nil {
		return err
	}
	snapshots, err := raft.NewFileSnapshotStoreWithLogger(dir, keepSnapshots, hclog.NewNullLogger())
	if err != nil {
		return err
	}
	self := raft.ServerAddress(r.Self)
	_, transport := raft.NewInmemTransport(self)
	configuration := raft.Configuration{Servers: []raft.Server{{Suffrage: raft.Voter, ID: raft.ServerID(r.Self), Address: self}}}
	sink, err := snapshots.Create(raft.SnapshotVersionMax, s.index, s.term, configuration, 1, transport)
	if err != nil {
		return errors.Join(err, transport.Close())
	}
	return errors.Join(r.base.Persist(sink), transport.Close(), syncDir(dir))
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
