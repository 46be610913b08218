package meta

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"divan/cluster/config"
	"divan/cluster/meta/metapb"
	"divan/shard/ring"
	"divan/storage/fault"
)

// model says in the plainest way what the machine must do.
type model struct {
	uuid  string
	dbs   map[string]Database
	used  map[string]int64 // largest suffix ever of a name
	nodes map[string]Node
	conf  map[string]string // "node/section/key" → value, or "-" when hidden
	slots map[uint32]Slot
}

func newModel() *model {
	return &model{dbs: map[string]Database{}, used: map[string]int64{}, nodes: map[string]Node{}, conf: map[string]string{}, slots: map[uint32]Slot{}}
}

func (m *model) apply(c *metapb.Command, index uint64) fault.Kind {
	switch op := c.Op.(type) {
	case *metapb.Command_Init:
		if m.uuid == "" {
			m.uuid = op.Init.Uuid
		}
	case *metapb.Command_CreateDatabase:
		db, err := wishFrom(proto.CloneOf(op.CreateDatabase))
		if err != nil {
			return fault.Corruption
		}
		for _, n := range op.CreateDatabase.Nodes {
			if _, ok := m.nodes[n]; !ok {
				return fault.NotFound
			}
		}
		if _, ok := m.dbs[db.Name]; ok {
			return fault.Exists
		}
		if used, ok := m.used[db.Name]; ok && db.Created <= used {
			db.Created = used + 1
		}
		db.Suffix = suffixOf(db.Created)
		m.used[db.Name] = db.Created
		db.Generation, db.Born = index, index
		for i, id := 0, index<<16; i < len(db.Shards); i++ {
			for j := range db.Shards[i].Copies {
				id++
				db.Shards[i].Copies[j].ID = id
			}
		}
		m.dbs[db.Name] = *db
	case *metapb.Command_DeleteDatabase:
		db, ok := m.dbs[op.DeleteDatabase.Name]
		if id := op.DeleteDatabase.Id; !ok || (id != nil && string(id) != string(db.ID[:])) {
			return fault.NoDatabase
		}
		delete(m.dbs, db.Name)
	case *metapb.Command_AlterDatabase:
		c := op.AlterDatabase
		db, ok := m.dbs[c.Name]
		if !ok || (c.Id != nil && string(c.Id) != string(db.ID[:])) {
			return fault.NoDatabase
		}
		if c.Security != nil {
			db.Security = c.Security
		}
		for _, one := range c.Settings {
			db.Settings[one.Number] = int(one.Value)
		}
		m.dbs[c.Name] = db
	case *metapb.Command_ChangeConfig:
		c := op.ChangeConfig
		key := c.Node + "/" + c.Section + "/" + c.Key
		switch c.Op {
		case metapb.ConfigChange_SET:
			m.conf[key] = "+" + c.Value
		case metapb.ConfigChange_HIDE:
			m.conf[key] = "-"
		default:
			delete(m.conf, key)
		}
	case *metapb.Command_AssignSlots:
		for _, p := range op.AssignSlots.Slots {
			if _, ok := m.nodes[p.Node]; m.slots[p.Number].Term == p.Term && (ok || p.Node == "") {
				m.slots[p.Number] = Slot{p.Node, index}
			}
		}
	default:
		return m.applyNode(c, index)
	}
	return 0
}

func (m *model) applyNode(c *metapb.Command, index uint64) fault.Kind {
	switch op := c.Op.(type) {
	case *metapb.Command_PutNode:
		m.nodes[op.PutNode.Name] = nodeFrom(op.PutNode)
	case *metapb.Command_AlterNode:
		c := op.AlterNode
		n, ok := m.nodes[c.Name]
		if !ok {
			return fault.NotFound
		}
		if c.Http != nil {
			n.HTTP = *c.Http
		}
		if c.Rpc != nil {
			n.RPC = *c.Rpc
		}
		if c.Zone != nil {
			n.Zone = *c.Zone
		}
		if c.Version != nil {
			n.Version = *c.Version
		}
		if c.Draining != nil {
			n.Draining = *c.Draining
		}
		m.nodes[c.Name] = n
	case *metapb.Command_RemoveNode:
		if _, ok := m.nodes[op.RemoveNode.Name]; !ok {
			return fault.NotFound
		}
		delete(m.nodes, op.RemoveNode.Name)
	case *metapb.Command_ReplaceNode:
		name, by := op.ReplaceNode.Name, op.ReplaceNode.By
		_, old := m.nodes[name]
		for _, db := range m.dbs {
			for _, s := range db.Shards {
				old = old || slices.Contains(s.Nodes(), name)
			}
		}
		if _, ok := m.nodes[by]; !old || !ok {
			return fault.NotFound
		}
		for _, db := range m.dbs {
			if !op.ReplaceNode.Force && !ring.NodeDispensable(db.Shards, name) {
				return fault.Conflict
			}
		}
		delete(m.nodes, name)
		m.replace(name, by, index)
	}
	return 0
}

func (m *model) replace(old, by string, index uint64) {
	for name, db := range m.dbs {
		shards, changed := ring.Replace(db.Shards, old, by, ring.IDsOf(index))
		if !changed {
			continue
		}
		if db.Generation = index; ring.FullChanged(db.Shards, shards) {
			db.FullGeneration = index
		}
		db.Shards = shards
		m.dbs[name] = db
	}
}

func (m *model) compare(t *rapid.T, s *state) {
	if s.uuid != m.uuid || !maps.Equal(s.nodes, m.nodes) {
		t.Fatalf("uuid %q nodes %v, want %q %v", s.uuid, s.nodes, m.uuid, m.nodes)
	}
	names := slices.Sorted(maps.Keys(m.dbs))
	i := 0
	for db := range s.dbs.All() {
		if i == len(names) || db.Name != names[i] {
			t.Fatalf("database %q at %d, want %v", db.Name, i, names)
		}
		if want := m.dbs[db.Name]; fmt.Sprintf("%+v", *db) != fmt.Sprintf("%+v", want) {
			t.Fatalf("database %+v, want %+v", *db, want)
		}
		i++
	}
	if i != len(names) {
		t.Fatalf("%d databases, want %d", i, len(names))
	}
	got := map[string]string{}
	flatten := func(node string, l config.Layer) {
		for section, keys := range l.Set {
			for k, v := range keys {
				got[node+"/"+section+"/"+k] = "+" + v
			}
		}
		for section, keys := range l.Hidden {
			for k := range keys {
				got[node+"/"+section+"/"+k] = "-"
			}
		}
	}
	flatten("", s.cluster)
	for node, l := range s.perNode {
		flatten(node, l)
	}
	if !maps.Equal(got, m.conf) {
		t.Fatalf("configuration %v, want %v", got, m.conf)
	}
	for i, slot := range s.slots {
		if slot != m.slots[uint32(i)] {
			t.Fatalf("slot %d is %v, want %v", i, slot, m.slots[uint32(i)])
		}
	}
}

// The machine does what the model does, its events tell the whole difference,
// and a machine restored from its snapshot goes on as if nothing had happened.
func TestMachineAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, err := config.New(config.Options{})
		if err != nil {
			t.Fatal(err)
		}
		m, mod := newStateMachine(self, h), newModel()
		for i, name := range []string{"a@a", "b@b", "c@c"} { // else most creations are refused
			c := putCommand(Node{Name: name})
			mod.apply(c, uint64(i+1))
			m.Apply(&raft.Log{Index: uint64(i + 1), Type: raft.LogCommand, Data: encode(c)})
		}
		sub, mirror := m.subscribe()
		for i := range rapid.IntRange(1, 60).Draw(t, "batches") {
			var logs []*raft.Log
			var want []fault.Kind
			for range rapid.IntRange(1, 4).Draw(t, "commands") {
				c := drawCommand(t)
				data := encode(c)
				index := uint64(10*(i+1) + len(logs))
				want = append(want, mod.apply(c, index))
				logs = append(logs, &raft.Log{Index: index, Type: raft.LogCommand, Data: data})
			}
			before := m.load()
			kept, slots := dumpDatabases(before.dbs), *before.slots
			for j, res := range m.ApplyBatch(logs) {
				if got := fault.KindOf(res.(result).err); got != want[j] {
					t.Fatalf("command %d: kind %d, want %d", j, got, want[j])
				}
			}
			if dumpDatabases(before.dbs) != kept || *before.slots != slots {
				t.Fatal("an earlier state has changed")
			}
			mod.compare(t, m.load())
			mirror = follow(t, sub, mirror)
			if got, want := dumpDatabases(mirror), dumpDatabases(m.load().dbs); got != want {
				t.Fatalf("by the events\n%s\nin truth\n%s", got, want)
			}
			if rapid.IntRange(0, 9).Draw(t, "restore") == 0 {
				m = restored(t, m)
				mod.compare(t, m.load())
				sub, mirror = m.subscribe()
			}
		}
	})
}

func dumpDatabases(d Databases) string {
	var b strings.Builder
	for db := range d.All() {
		fmt.Fprintf(&b, "%+v\n", *db)
	}
	return b.String()
}

// follow applies the events that wait.
func follow(t *rapid.T, sub *Subscription, d Databases) Databases {
	events, err := sub.take()
	if err != nil {
		t.Fatal(err)
	}
	last := uint64(0)
	for _, e := range events {
		if e.Index < last {
			t.Fatalf("event of %d after %d", e.Index, last)
		}
		last = e.Index
		switch e.Kind {
		case Created:
			if _, ok := d.Get(e.New.Name); ok || e.Old != nil {
				t.Fatalf("created twice: %s", e.New.Name)
			}
			d = d.with(e.New)
		case Changed:
			if old, ok := d.Get(e.New.Name); !ok || old != e.Old {
				t.Fatalf("change of another database than the last one told: %s", e.New.Name)
			}
			d = d.with(e.New)
		case Deleted:
			if old, ok := d.Get(e.Old.Name); !ok || old != e.Old || e.New != nil {
				t.Fatalf("deleted what was not there: %s", e.Old.Name)
			}
			d = d.without(e.Old.Name)
		}
	}
	return d
}

func restored(t *rapid.T, m *stateMachine) *stateMachine {
	b := snapshotOf(t, m)
	next := newStateMachine(m.self, m.config)
	if err := next.Restore(io.NopCloser(bytes.NewReader(b))); err != nil {
		t.Fatal(err)
	}
	if got, want := dump(next), dump(m); got != want {
		t.Fatalf("restored\n%s\nwant\n%s", got, want)
	}
	if again := snapshotOf(t, next); !bytes.Equal(again, b) {
		t.Fatal("the snapshot of a restored machine differs")
	}
	if !reflect.DeepEqual(m.config.Load(), next.config.Load()) {
		t.Fatal("another configuration")
	}
	return next
}

// Beyond maxTombstones deleted names the floor keeps suffixes unique.
func TestTombstones(t *testing.T) {
	g := newTombstones()
	used := map[string]map[int64]bool{}
	for i := range 3 * maxTombstones {
		name := fmt.Sprintf("db%d", i%(maxTombstones+maxTombstones/2))
		s := g.nextSuffix(name, 100)
		if used[name] == nil {
			used[name] = map[int64]bool{}
		}
		if used[name][s] {
			t.Fatalf("suffix %d of %s twice", s, name)
		}
		used[name][s] = true
		g.add(name, s)
	}
	if len(g.queue) != maxTombstones || len(g.last) > maxTombstones || len(g.tails) != maxTombstones {
		t.Errorf("%d tombstones of %d names and %d tails", len(g.queue), len(g.last), len(g.tails))
	}
	for _, dead := range g.queue[maxTombstones-10:] {
		for _, r := range ring.Split(3) {
			if !g.hasCopy(ring.CopyName(r, dead.name, suffixOf(dead.suffix))) || g.hasCopy(ring.CopyName(r, dead.name, suffixOf(dead.suffix+1))) {
				t.Errorf("copies of %s, which was deleted, or of its successor", dead.name)
			}
		}
	}
	if g.hasCopy("") || g.hasCopy("shards/") {
		t.Error("what is no copy is one of a deleted database")
	}
}
