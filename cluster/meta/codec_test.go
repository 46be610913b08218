package meta

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"divan/cluster/config"
	"divan/cluster/meta/dbsetting"
	"divan/cluster/meta/metapb"
	"divan/shard/ring"
)

// dump prints a machine's whole state in one order.
func dump(m *stateMachine) string {
	s := m.load()
	var b strings.Builder
	fmt.Fprintln(&b, s.uuid, s.secret, s.nodes, s.cluster, s.perNode)
	g := m.tombstones.Load()
	fmt.Fprintln(&b, g.floor, g.last, g.queue)
	fmt.Fprintln(&b, *s.slots)
	for db := range s.dbs.All() {
		fmt.Fprintf(&b, "%+v\n", *db)
	}
	return b.String()
}

func drawNode(t *rapid.T) Node {
	text := rapid.StringN(0, 8, -1)
	return Node{
		Name: rapid.SampledFrom([]string{"a@a", "b@b", "c@c", "d@d"}).Draw(t, "node"),
		HTTP: text.Draw(t, "http"), RPC: text.Draw(t, "rpc"), Version: text.Draw(t, "version"),
		Zone: text.Draw(t, "zone"), Draining: rapid.Bool().Draw(t, "draining"),
	}
}

func drawDatabase(t *rapid.T) *Database {
	nodes := []ring.Node{{Name: "a@a"}, {Name: "b@b"}, {Name: "c@c"}}
	shards, err := ring.Place(ring.Request{
		Nodes: nodes, Q: rapid.IntRange(1, 9).Draw(t, "q"), N: rapid.IntRange(1, 4).Draw(t, "n"),
		Rotate: rapid.Uint64().Draw(t, "rotate"),
	})
	if err != nil {
		t.Fatal(err)
	}
	db := &Database{
		Name:        fmt.Sprintf("db%d", rapid.IntRange(0, 9).Draw(t, "name")),
		Created:     rapid.Int64Range(1, 50).Draw(t, "created"),
		N:           len(shards[0].Nodes()),
		Partitioned: rapid.Bool().Draw(t, "partitioned"),
		Shards:      shards,
		Settings:    dbsetting.Standard(),
	}
	for _, s := range dbsetting.All() {
		if rapid.Bool().Draw(t, "set") {
			db.Settings = db.Settings.With(s, rapid.IntRange(0, 1<<40).Draw(t, s.Path()))
		}
	}
	db.Suffix = suffixOf(db.Created)
	if rapid.Bool().Draw(t, "known id") { // one that a deletion may name
		db.ID[0] = byte(rapid.IntRange(0, 3).Draw(t, "number"))
	} else {
		copy(db.ID[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
	}
	if rapid.Bool().Draw(t, "secured") {
		db.Security = rapid.SliceOf(rapid.Byte()).Draw(t, "security")
	}
	return db
}

func drawID(t *rapid.T) []byte {
	if rapid.Bool().Draw(t, "whichever") {
		return nil
	}
	return append([]byte{byte(rapid.IntRange(0, 3).Draw(t, "id"))}, make([]byte, 15)...)
}

func drawCommand(t *rapid.T) *metapb.Command {
	name := fmt.Sprintf("db%d", rapid.IntRange(0, 9).Draw(t, "name"))
	optional := func(what string, values ...string) *string {
		if !rapid.Bool().Draw(t, what+"?") {
			return nil
		}
		return new(rapid.SampledFrom(values).Draw(t, what))
	}
	switch rapid.IntRange(1, 13).Draw(t, "operation") {
	case 1:
		return &metapb.Command{Op: &metapb.Command_Init{Init: &metapb.Init{
			Uuid: rapid.StringN(1, 5, -1).Draw(t, "uuid"), Secret: rapid.String().Draw(t, "secret"),
		}}}
	case 2, 10, 11:
		return createCommand(drawDatabase(t))
	case 3:
		return deleteCommand(&metapb.DeleteDatabase{Name: name, Id: drawID(t)})
	case 4:
		c := &metapb.AlterDatabase{Name: name, Id: drawID(t)}
		if rapid.Bool().Draw(t, "security?") {
			c.Security = append([]byte{}, rapid.SliceOf(rapid.Byte()).Draw(t, "security")...)
		}
		for _, s := range dbsetting.All() {
			if rapid.Bool().Draw(t, "limit?") {
				c.Settings = append(c.Settings, &metapb.Setting{Number: uint32(s), Value: rapid.Int64Range(0, 1000).Draw(t, "limit")})
			}
		}
		return &metapb.Command{Op: &metapb.Command_AlterDatabase{AlterDatabase: c}}
	case 5:
		c := &metapb.ConfigChange{
			Op:      metapb.ConfigChange_Op(rapid.IntRange(1, 3).Draw(t, "op")),
			Node:    rapid.SampledFrom([]string{"", self, "b@b"}).Draw(t, "node"),
			Section: rapid.SampledFrom([]string{"log", "x", "y"}).Draw(t, "section"),
			Key:     rapid.SampledFrom([]string{"level", "k", "l"}).Draw(t, "key"),
		}
		if c.Op == metapb.ConfigChange_SET {
			c.Value = rapid.SampledFrom([]string{"", "1", "2", "debug"}).Draw(t, "value")
		}
		return changeConfigCommand(c)
	case 6, 12:
		return putCommand(drawNode(t))
	case 7:
		c := &metapb.AlterNode{
			Name: drawNode(t).Name, Zone: optional("zone", "", "z1", "z2"), Http: optional("http", "", "h:1"),
			Rpc: optional("rpc", "r:1", "r:2"), Version: optional("version", "1", "2"),
		}
		if rapid.Bool().Draw(t, "drain?") {
			c.Draining = new(rapid.Bool().Draw(t, "drain"))
		}
		return alterNodeCommand(c)
	case 8:
		return &metapb.Command{Op: &metapb.Command_RemoveNode{RemoveNode: &metapb.RemoveNode{Name: drawNode(t).Name}}}
	case 13:
		return assignCommand(rapid.SliceOfN(rapid.Custom(drawMove), 0, 5).Draw(t, "moves"))
	}
	c := &metapb.ReplaceNode{Name: "a@a", By: "b@b"}
	if rapid.Bool().Draw(t, "other way") {
		c = &metapb.ReplaceNode{Name: "c@c", By: "a@a"}
	}
	c.Force = rapid.Bool().Draw(t, "force")
	return &metapb.Command{Op: &metapb.Command_ReplaceNode{ReplaceNode: c}}
}

// drawMove draws a move of a slot that often fits the indexes of
// TestMachineAgainstModel.
func drawMove(t *rapid.T) SlotMove {
	return SlotMove{
		Slot: rapid.SampledFrom([]int{0, 1, SlotCount - 1}).Draw(t, "slot"),
		Node: rapid.SampledFrom([]string{"", "a@a", "b@b", "d@d"}).Draw(t, "node"),
		Term: 10 * rapid.Uint64Range(0, 3).Draw(t, "term"),
	}
}

func createCommand(db *Database) *metapb.Command {
	return &metapb.Command{Op: &metapb.Command_CreateDatabase{CreateDatabase: db.proto()}}
}

func putCommand(n Node) *metapb.Command {
	return &metapb.Command{Op: &metapb.Command_PutNode{PutNode: n.proto()}}
}

func TestCommandRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCommand(t)
		got, err := decodeCommand(encode(c))
		if err != nil {
			t.Fatalf("decode %+v: %v", c, err)
		}
		if !proto.Equal(got, c) || (c.GetCreateDatabase() != nil && !proto.Equal(got.database.proto(), c.GetCreateDatabase())) {
			t.Fatalf("%+v became %+v", c, got)
		}
	})
}

// A database is the same after it was written and read.
func TestDatabaseRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		db := drawDatabase(t)
		if db.Security != nil && len(db.Security) == 0 {
			db.Security = []byte{} // nil and empty differ, two spellings of empty do not
		}
		c, err := decodeCommand(encode(createCommand(db)))
		if err != nil || !reflect.DeepEqual(c.database, db) {
			t.Fatalf("%+v became %+v, %v", db, c, err)
		}
	})
}

// A field that a newer version adds is skipped, with any wire type.
func TestUnknownFields(t *testing.T) {
	deletion := []byte{1<<3 | 2, 5, 'f', 'i', 'l', 'm', 's'}
	deletion = append(deletion, 15<<3, 7)             // a number
	deletion = append(deletion, 14<<3|5, 1, 2, 3, 4)  // four bytes
	deletion = append(deletion, 13<<3|2, 2, 'h', 'i') // a text
	got, err := decodeCommand(append([]byte{4<<3 | 2, byte(len(deletion))}, deletion...))
	if err != nil || got.GetDeleteDatabase().GetName() != "films" {
		t.Errorf("got %+v, %v", got, err)
	}
}

// An operation that a newer version adds is not.
func TestUnknownOperations(t *testing.T) {
	for _, number := range []protowire.Number{15, 16, 17, 2000} {
		b := protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), encode(&metapb.RemoveNode{Name: "a@a"}))
		if c, err := decodeCommand(b); !errors.Is(err, errMalformed) || !strings.Contains(err.Error(), "newer version") {
			t.Errorf("operation %d: %+v, %v", number, c, err)
		}
	}
}

func TestMalformedCommands(t *testing.T) {
	full := []ring.Shard{{Range: ring.Full(), Copies: ring.CopiesOn("a@a")}}
	create := encode(createCommand(&Database{Name: "a", Created: 1, Shards: full}))
	if _, err := decodeCommand(create); err != nil {
		t.Fatal(err)
	}
	bad := func(change func(*metapb.Database)) []byte {
		p := (&Database{Name: "a", Created: 1, Shards: full}).proto()
		change(p)
		return encode(&metapb.Command{Op: &metapb.Command_CreateDatabase{CreateDatabase: p}})
	}
	for name, b := range map[string][]byte{
		"empty":              {},
		"of an old format":   {1, 3},
		"cut":                create[:len(create)-1],
		"creation of none":   {2<<3 | 2, 0},
		"no name":            bad(func(p *metapb.Database) { p.Name = "" }),
		"no time":            bad(func(p *metapb.Database) { p.Created = 0 }),
		"no id":              bad(func(p *metapb.Database) { p.Id = nil }),
		"hole in the ring":   bad(func(p *metapb.Database) { p.Shards[0].End = 5 }),
		"unknown node":       bad(func(p *metapb.Database) { p.Shards[0].Nodes[0] = 1 }),
		"nameless node":      bad(func(p *metapb.Database) { p.Nodes[0] = "" }),
		"no operation":       encode(changeConfigCommand(&metapb.ConfigChange{Section: "a", Key: "b"})),
		"another operation":  encode(changeConfigCommand(&metapb.ConfigChange{Op: 9, Section: "a", Key: "b"})),
		"node without name":  encode(putCommand(Node{})),
		"truncated varint":   {5<<3 | 2, 2, 1 << 3, 0x80},
		"change of what":     encode(&metapb.Command{Op: &metapb.Command_AlterDatabase{AlterDatabase: &metapb.AlterDatabase{Name: "a", Id: []byte("x")}}}),
		"deletion of what":   encode(deleteCommand(&metapb.DeleteDatabase{Name: "a", Id: []byte("x")})),
		"slot beyond all":    encode(assignCommand([]SlotMove{{Slot: SlotCount, Node: "a@a"}})),
		"length beyond data": {4<<3 | 2, 100, 'a'},
	} {
		if c, err := decodeCommand(b); !errors.Is(err, errMalformed) {
			t.Errorf("%s: decoded as %+v, %v", name, c, err)
		}
	}
}

func FuzzDecodeCommand(f *testing.F) {
	rapid.Check(f, func(t *rapid.T) { f.Add(encode(drawCommand(t))) })
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := decodeCommand(b)
		if err != nil {
			return
		}
		again, err := decodeCommand(encode(c))
		if err != nil {
			t.Fatalf("what was decoded does not encode: %v", err)
		}
		if !proto.Equal(c, again) || !reflect.DeepEqual(c.database, again.database) {
			t.Fatalf("%+v became %+v", c, again)
		}
		m := newTestMachine(t) // what was accepted can be carried out
		m.Apply(&raft.Log{Type: raft.LogCommand, Index: 1, Data: b})
		if m.failed != nil {
			t.Fatal(m.failed)
		}
	})
}

// newTestMachine has a group with one member.
func newTestMachine(tb testing.TB) *stateMachine {
	tb.Helper()
	m := newStateMachine(self, holder(tb, config.Options{}))
	s := newState()
	s.uuid, s.secret, s.nodes = "u", "s", map[string]Node{self: {Name: self}}
	m.current.Store(s)
	return m
}

func snapshotOf(tb rapid.TB, m *stateMachine) []byte {
	s, err := m.Snapshot()
	if err != nil {
		tb.Fatal(err)
	}
	store := raft.NewInmemSnapshotStore()
	sink, err := store.Create(raft.SnapshotVersionMax, 1, 1, raft.Configuration{}, 1, nil)
	if err != nil {
		tb.Fatal(err)
	}
	if err := s.Persist(sink); err != nil {
		tb.Fatal(err)
	}
	s.Release()
	_, r, err := store.Open(sink.ID())
	if err != nil {
		tb.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func FuzzReadSnapshot(f *testing.F) {
	m := newTestMachine(f)
	f.Add(snapshotOf(f, m))
	apply := func(c *metapb.Command) {
		m.Apply(&raft.Log{Type: raft.LogCommand, Index: m.load().index + 1, Data: encode(c)})
	}
	for _, name := range []string{"a@a", "b@b", "c@c"} {
		apply(putCommand(Node{Name: name}))
	}
	rapid.Check(f, func(t *rapid.T) { apply(drawCommand(t)) })
	f.Add(snapshotOf(f, m))
	f.Fuzz(func(_ *testing.T, b []byte) {
		s, g, err := readSnapshot(bufio.NewReader(bytes.NewReader(b)))
		if err != nil {
			return
		}
		// What was accepted can be worked with.
		for db := range s.dbs.All() {
			if got, ok := s.dbs.Get(db.Name); !ok || got != db {
				panic("a database of the snapshot is not found")
			}
		}
		g.nextSuffix("a", 1)
	})
}

// What commands of any accepted size have made of a database can be read from a
// snapshot: also what was accepted before objects had a limit of their own.
func TestRecordsLargerThanCommands(t *testing.T) {
	m := newTestMachine(t)
	commands := []*metapb.Command{putCommand(Node{Name: "b@b"}), putCommand(Node{Name: "c@c"})}
	commands = append(commands, createCommand(&Database{Name: "a", Created: 5, Shards: shardsOn(ring.MaxQ, self, "b@b", "c@c")}))
	alter := &metapb.AlterDatabase{Name: "a", Security: make([]byte, maxCommand-16)}
	for i, c := range append(commands, &metapb.Command{Op: &metapb.Command_AlterDatabase{AlterDatabase: alter}}) {
		b := encode(c)
		if len(b) > maxCommand {
			t.Fatalf("a command of %d bytes", len(b))
		}
		m.Apply(&raft.Log{Index: uint64(i + 1), Type: raft.LogCommand, Data: b})
	}
	got, _, err := readSnapshot(bufio.NewReader(bytes.NewReader(snapshotOf(t, m))))
	if err != nil {
		t.Fatal(err)
	}
	if back, ok := got.dbs.Get("a"); !ok || len(back.Security) != maxCommand-16 {
		t.Error("the security object did not come back")
	}
}

func TestCutSnapshotsAreRefused(t *testing.T) {
	m := newTestMachine(t)
	for i, name := range []string{"a", "b"} {
		db := &Database{Name: name, Created: 5, Shards: []ring.Shard{{Range: ring.Full(), Copies: ring.CopiesOn(self)}}}
		m.Apply(&raft.Log{Index: uint64(i + 1), Type: raft.LogCommand, Data: encode(createCommand(db))})
	}
	whole := snapshotOf(t, m)
	for n := range whole {
		if _, _, err := readSnapshot(bufio.NewReader(bytes.NewReader(whole[:n]))); err == nil {
			t.Errorf("accepted %d of %d bytes", n, len(whole))
		}
	}
	if _, _, err := readSnapshot(bufio.NewReader(bytes.NewReader(whole))); err != nil {
		t.Error(err)
	}
	swapped := slices.Clone(whole)
	i := bytes.Index(swapped, []byte("\x01a"))
	if i < 0 {
		t.Fatal("no database in the snapshot")
	}
	swapped[i+1] = 'c' // "c" before "b"
	if _, _, err := readSnapshot(bufio.NewReader(bytes.NewReader(swapped))); err == nil {
		t.Error("accepted databases out of order")
	}
}

// A record that a newer version adds is not skipped.
func TestUnknownRecords(t *testing.T) {
	b := append([]byte(snapshotMagic), byte(len(unknownCommand())))
	_, _, err := readSnapshot(bufio.NewReader(bytes.NewReader(append(b, unknownCommand()...))))
	if !errors.Is(err, errMalformed) || !strings.Contains(err.Error(), "newer version") {
		t.Errorf("read with %v", err)
	}
}

func shardsOn(q int, nodes ...string) []ring.Shard {
	var out []ring.Shard
	for _, r := range ring.Split(q) {
		out = append(out, ring.Shard{Range: r, Copies: ring.CopiesOn(nodes...)})
	}
	return out
}

// TestSettingOfNewerVersion: an entry and a database with a setting that this program does not
// know are refused, as all that a newer version has written.
func TestSettingOfNewerVersion(t *testing.T) {
	known := uint32(len(dbsetting.All()))
	for number := range known + 1 {
		list := []*metapb.Setting{{Number: number, Value: 7}}
		create := createCommand(&Database{
			Name: "pond", Created: 7, N: 1, Shards: []ring.Shard{{Range: ring.Range{End: 1<<32 - 1}, Copies: ring.CopiesOn(self)}},
		})
		create.GetCreateDatabase().Settings = list
		alter := &metapb.Command{Op: &metapb.Command_AlterDatabase{AlterDatabase: &metapb.AlterDatabase{Name: "pond", Settings: list}}}
		for _, c := range []*metapb.Command{create, alter} {
			text, err := c.MarshalVT()
			if err != nil {
				t.Fatal(err)
			}
			_, err = decodeCommand(text)
			if newer := err != nil && strings.Contains(err.Error(), "a newer version wrote"); newer != (number == known) || !newer && err != nil {
				t.Errorf("setting %d: %v", number, err)
			}
		}
	}
}
