package meta

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"divan/cluster/config"
	"divan/shard/ring"
)

// dump prints a machine's whole state in one order.
func dump(m *machine) string {
	s := m.load()
	var b strings.Builder
	fmt.Fprintln(&b, s.uuid, s.secret, s.nodes, s.cluster, s.perNode)
	g := m.graves.Load()
	fmt.Fprintln(&b, g.floor, g.last, g.queue)
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
		Commands: rapid.Uint64Range(0, 3).Draw(t, "commands"),
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
		Name:             fmt.Sprintf("db%d", rapid.IntRange(0, 9).Draw(t, "name")),
		Created:          rapid.Int64Range(1, 50).Draw(t, "created"),
		N:                len(shards[0].Nodes),
		Partitioned:      rapid.Bool().Draw(t, "partitioned"),
		Shards:           shards,
		RevsLimit:        rapid.IntRange(0, 1<<40).Draw(t, "revs"),
		PurgedInfosLimit: rapid.IntRange(0, 1<<40).Draw(t, "purged"),
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

func drawCommand(t *rapid.T) *command {
	c := &command{kind: kind(rapid.IntRange(int(kindInit), int(kindZone)).Draw(t, "kind"))}
	name := fmt.Sprintf("db%d", rapid.IntRange(0, 9).Draw(t, "name"))
	switch c.kind {
	case kindInit:
		c.init = initCommand{uuid: rapid.StringN(1, 5, -1).Draw(t, "uuid"), secret: rapid.String().Draw(t, "secret")}
	case kindCreate, kindCreateHere:
		c.db = drawDatabase(t)
	case kindDelete:
		c.name = name
	case kindDeleteExact:
		c.name, c.id = name, [16]byte{byte(rapid.IntRange(0, 3).Draw(t, "id"))}
	case kindAlter, kindAlterExact:
		c.name = name
		if c.kind == kindAlterExact {
			c.id = [16]byte{byte(rapid.IntRange(0, 3).Draw(t, "id"))}
		}
		if rapid.Bool().Draw(t, "security?") {
			c.alter.security = append([]byte{}, rapid.SliceOf(rapid.Byte()).Draw(t, "security")...)
		}
		for _, p := range []**int{&c.alter.revsLimit, &c.alter.purgedInfosLimit} {
			if rapid.Bool().Draw(t, "limit?") {
				n := rapid.IntRange(0, 1000).Draw(t, "limit")
				*p = &n
			}
		}
	case kindConfig:
		c.config = configCommand{
			op:      configOp(rapid.IntRange(int(configPut), int(configDrop)).Draw(t, "op")),
			node:    rapid.SampledFrom([]string{"", self, "b@b"}).Draw(t, "node"),
			section: rapid.SampledFrom([]string{"log", "x", "y"}).Draw(t, "section"),
			key:     rapid.SampledFrom([]string{"level", "k", "l"}).Draw(t, "key"),
		}
		if c.config.op == configPut {
			c.config.value = rapid.SampledFrom([]string{"", "1", "2", "debug"}).Draw(t, "value")
		}
	case kindPutNode, kindAmendNode:
		c.node = drawNode(t)
	case kindZone:
		c.name = drawNode(t).Name
		c.node = Node{Name: c.name, Zone: rapid.SampledFrom([]string{"", "z1", "z2"}).Draw(t, "zone")}
	case kindDropNode:
		c.name = drawNode(t).Name
	case kindDrain:
		c.name = drawNode(t).Name
		c.node = Node{Name: c.name, Draining: rapid.Bool().Draw(t, "drain")}
	case kindReplace, kindTakeOver:
		c.name, c.node.Name = "a@a", "b@b"
		if rapid.Bool().Draw(t, "other way") {
			c.name, c.node.Name = "c@c", "a@a"
		}
	}
	return c
}

func TestCommandRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCommand(t)
		b := c.encode()
		got, err := decodeCommand(b)
		if err != nil {
			t.Fatalf("decode %+v: %v", c, err)
		}
		if again := got.encode(); !bytes.Equal(again, b) {
			t.Fatalf("%+v became %+v", c, got)
		}
		if c.db != nil && c.db.Security != nil && len(c.db.Security) == 0 {
			c.db.Security = []byte{} // nil and empty differ, two spellings of empty do not
		}
		if !reflect.DeepEqual(got, c) {
			t.Fatalf("%+v became %+v", c, got)
		}
	})
}

// A field that a newer version adds is skipped, whatever its wire type.
func TestUnknownFields(t *testing.T) {
	c := &command{kind: kindDelete, name: "films"}
	b := c.encode()
	b = append(b, 15<<3, 7)                   // a number
	b = append(b, 14<<3|5, 1, 2, 3, 4)        // four bytes
	b = append(b, 13<<3|2, 2, 'h', 'i')       // a text
	b = append(b, fieldName<<3|5, 9, 9, 9, 9) // a known number with another type
	got, err := decodeCommand(b)
	if err != nil || got.name != "films" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestMalformedCommands(t *testing.T) {
	create := (&command{kind: kindCreate, db: &Database{Name: "a", Created: 1, Shards: []ring.Shard{{Range: ring.Full(), Nodes: []string{"a@a"}}}}}).encode()
	if _, err := decodeCommand(create); err != nil {
		t.Fatal(err)
	}
	gap := (&command{kind: kindCreate, db: &Database{Name: "a", Created: 1, Shards: []ring.Shard{{Range: ring.Range{End: 5}, Nodes: []string{"a@a"}}}}}).encode()
	for name, b := range map[string][]byte{
		"empty":              {},
		"version":            {9, byte(kindDelete)},
		"kind":               {commandVersion, 99},
		"cut":                create[:len(create)-1],
		"creation of none":   {commandVersion, byte(kindCreate)},
		"hole in the ring":   gap,
		"no operation":       {commandVersion, byte(kindConfig)},
		"no node":            {commandVersion, byte(kindPutNode)},
		"node without name":  {commandVersion, byte(kindPutNode), fieldNodeBody<<3 | 2, 0},
		"truncated varint":   {commandVersion, byte(kindConfig), fieldOp << 3, 0x80},
		"change of what":     {commandVersion, byte(kindAlterExact), fieldName<<3 | 2, 1, 'a', fieldAlteredID<<3 | 2, 1, 'x'},
		"deletion of what":   {commandVersion, byte(kindDeleteExact), fieldName<<3 | 2, 1, 'a', fieldDatabaseID<<3 | 2, 1, 'x'},
		"length beyond data": {commandVersion, byte(kindDelete), fieldName<<3 | 2, 100, 'a'},
	} {
		if c, err := decodeCommand(b); err == nil {
			t.Errorf("%s: decoded as %+v", name, c)
		}
	}
}

func FuzzDecodeCommand(f *testing.F) {
	rapid.Check(f, func(t *rapid.T) { f.Add(drawCommand(t).encode()) })
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := decodeCommand(b)
		if err != nil {
			return
		}
		again, err := decodeCommand(c.encode())
		if err != nil {
			t.Fatalf("what was decoded does not encode: %v", err)
		}
		if !reflect.DeepEqual(c, again) {
			t.Fatalf("%+v became %+v", c, again)
		}
	})
}

func testMachine(tb testing.TB) *machine {
	tb.Helper()
	return newMachine(self, holder(tb, config.Options{}))
}

func snapshotOf(tb rapid.TB, m *machine) []byte {
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
	m := testMachine(f)
	f.Add(snapshotOf(f, m))
	apply := func(c *command) {
		m.Apply(&raft.Log{Type: raft.LogCommand, Index: m.load().index + 1, Data: c.encode()})
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
		g.suffix("a", 1)
	})
}

// What commands of any accepted size have made of a database can be read from a
// snapshot: also what was accepted before objects had a limit of their own.
func TestRecordsLargerThanCommands(t *testing.T) {
	m := testMachine(t)
	db := &Database{Name: "a", Created: 5, Shards: shardsOn(ring.MaxQ, "a@a", "b@b", "c@c")}
	alter := &command{kind: kindAlter, name: "a", alter: alterCommand{security: make([]byte, maxCommand-16)}}
	for i, c := range []*command{{kind: kindCreate, db: db}, alter} {
		b := c.encode()
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
	m := testMachine(t)
	for i, name := range []string{"a", "b"} {
		db := &Database{Name: name, Created: 5, Shards: []ring.Shard{{Range: ring.Full(), Nodes: []string{"a@a"}}}}
		m.Apply(&raft.Log{Index: uint64(i + 1), Type: raft.LogCommand, Data: (&command{kind: kindCreate, db: db}).encode()})
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
	if i := bytes.Index(swapped, []byte("\x01a")); i > 0 {
		swapped[i+1] = 'c' // "c" before "b"
	}
	if _, _, err := readSnapshot(bufio.NewReader(bytes.NewReader(swapped))); err == nil {
		t.Error("accepted databases out of order")
	}
}

func shardsOn(q int, nodes ...string) []ring.Shard {
	var out []ring.Shard
	for _, r := range ring.Split(q) {
		out = append(out, ring.Shard{Range: r, Nodes: nodes})
	}
	return out
}
