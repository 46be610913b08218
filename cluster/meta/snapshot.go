package meta

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/hashicorp/raft"

	"divan/cluster/config"
	"divan/cluster/meta/metapb"
)

// A snapshot is the magic, then records (metapb.Record), each behind its length.
// Raft's snapshot store checks the bytes; the last record tells a short file
// from a whole one.
const (
	snapshotMagic  = "DIVANMETA\x02"
	snapshotBuffer = 64 << 10

	// maxRecord bounds a record, in bytes. It is far above what commands can
	// make of a database, each of which adds to it: what was once written must
	// be readable, or no node starts again.
	maxRecord = 16 * maxCommand
)

// snapshot is the state at one moment, to be written while commands go on.
type snapshot struct {
	state      *state
	tombstones *tombstones
}

// Persist implements raft.FSMSnapshot.
func (s *snapshot) Persist(sink raft.SnapshotSink) error {
	w := bufio.NewWriterSize(sink, snapshotBuffer)
	err := s.write(w)
	if err == nil {
		err = w.Flush()
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write a snapshot of the metadata: %w", err), sink.Cancel())
	}
	return sink.Close()
}

// Release implements raft.FSMSnapshot.
func (s *snapshot) Release() {}

// recordWriter writes records; its first error stays.
type recordWriter struct {
	w     *bufio.Writer
	buf   []byte
	count uint64
	err   error
}

func (w *recordWriter) write(r *metapb.Record) {
	if w.err != nil {
		return
	}
	size := r.SizeVT()
	w.buf = binary.AppendUvarint(w.buf[:0], uint64(size))
	head := len(w.buf)
	w.buf = slices.Grow(w.buf, size)[:head+size]
	if _, w.err = r.MarshalToSizedBufferVT(w.buf[head:]); w.err == nil {
		_, w.err = w.w.Write(w.buf)
	}
	w.count++
}

func (s *snapshot) write(out *bufio.Writer) error {
	if _, err := out.WriteString(snapshotMagic); err != nil {
		return err
	}
	w := &recordWriter{w: out}
	w.write(&metapb.Record{Record: &metapb.Record_Head{Head: &metapb.Head{
		Uuid: s.state.uuid, Secret: s.state.secret, Floor: s.tombstones.floor, Index: s.state.index, Term: s.state.term,
		ClusterVersion: s.state.clusterVersion,
	}}})
	for _, n := range s.state.sortedNodes() {
		w.write(&metapb.Record{Record: &metapb.Record_Node{Node: n.proto()}})
	}
	w.writeLayer("", s.state.cluster)
	for _, name := range slices.Sorted(maps.Keys(s.state.perNode)) {
		w.writeLayer(name, s.state.perNode[name])
	}
	for i, slot := range s.state.slots {
		if slot.Term != 0 {
			w.write(&metapb.Record{Record: &metapb.Record_Slot{Slot: slot.proto(i)}})
		}
	}
	for r := range s.state.records.All() {
		w.write(&metapb.Record{Record: &metapb.Record_Stored{Stored: &metapb.StoredRecord{Key: r.Key, Value: r.Value, Version: r.Version}}})
	}
	for _, t := range s.tombstones.queue {
		w.write(&metapb.Record{Record: &metapb.Record_Deleted{Deleted: &metapb.Tombstone{Name: t.name, Suffix: t.suffix}}})
	}
	for db := range s.state.dbs.All() {
		w.write(&metapb.Record{Record: &metapb.Record_Database{Database: db.proto()}})
	}
	w.write(&metapb.Record{Record: &metapb.Record_End{End: &metapb.End{Records: w.count}}})
	return w.err
}

// writeLayer writes a layer of the configuration as the changes that make it.
func (w *recordWriter) writeLayer(node string, l config.Layer) {
	write := func(op metapb.ConfigChange_Op, section, key, value string) {
		c := &metapb.ConfigChange{Op: op, Node: node, Section: section, Key: key, Value: value}
		w.write(&metapb.Record{Record: &metapb.Record_Config{Config: c}})
	}
	for _, section := range slices.Sorted(maps.Keys(l.Set)) {
		for _, key := range slices.Sorted(maps.Keys(l.Set[section])) {
			write(metapb.ConfigChange_SET, section, key, l.Set[section][key])
		}
	}
	for _, section := range slices.Sorted(maps.Keys(l.Hidden)) {
		for _, key := range slices.Sorted(maps.Keys(l.Hidden[section])) {
			write(metapb.ConfigChange_HIDE, section, key, "")
		}
	}
}

// snapshotReader builds a state from records.
type snapshotReader struct {
	state      *state
	tombstones *tombstones
	dbs        []*Database
	count      uint64
	ended      bool
}

// readSnapshot reads what write wrote. For any input it returns an error or a state that satisfies
// check.
func readSnapshot(in *bufio.Reader) (*state, *tombstones, error) {
	magic := make([]byte, len(snapshotMagic))
	if _, err := io.ReadFull(in, magic); err != nil || string(magic) != snapshotMagic {
		return nil, nil, fmt.Errorf("%w: no snapshot of a known version", errMalformed)
	}
	r := &snapshotReader{
		state:      newState(),
		tombstones: newTombstones(),
	}
	var buf bytes.Buffer
	for !r.ended {
		size, err := binary.ReadUvarint(in)
		if err != nil || size > maxRecord {
			return nil, nil, fmt.Errorf("%w: length of record %d", errMalformed, r.count)
		}
		buf.Reset() // grows as bytes come, not as a length promises them
		if _, err := io.CopyN(&buf, in, int64(size)); err != nil {
			return nil, nil, fmt.Errorf("%w: record %d is cut off", errMalformed, r.count)
		}
		if err := r.record(buf.Bytes()); err != nil {
			return nil, nil, fmt.Errorf("record %d: %w", r.count, err)
		}
		r.count++
	}
	r.state.dbs = databasesOf(r.dbs)
	return r.state, r.tombstones, r.state.check()
}

func (r *snapshotReader) record(b []byte) error {
	var rec metapb.Record // a message has copies of what it is read from
	if err := rec.UnmarshalVT(b); err != nil {
		return fmt.Errorf("%w: %w", errMalformed, err)
	}
	switch rec := rec.Record.(type) {
	case *metapb.Record_Head:
		r.state.uuid, r.state.secret = rec.Head.Uuid, rec.Head.Secret
		r.state.index, r.state.term, r.state.clusterVersion = rec.Head.Index, rec.Head.Term, rec.Head.ClusterVersion
		r.tombstones.floor = rec.Head.Floor
	case *metapb.Record_Node:
		if rec.Node.Name == "" {
			return fmt.Errorf("%w: node without a name", errMalformed)
		}
		r.state.nodes[rec.Node.Name] = nodeFrom(rec.Node)
	case *metapb.Record_Config:
		if err := checkConfigChange(rec.Config); err != nil {
			return err
		}
		r.changeConfig(rec.Config)
	case *metapb.Record_Slot:
		if !isSlot(rec.Slot) {
			return fmt.Errorf("%w: slot %d", errMalformed, rec.Slot.GetNumber())
		}
		r.state.slots[rec.Slot.Number] = Slot{rec.Slot.Node, rec.Slot.Term}
	case *metapb.Record_Stored:
		if rec.Stored.Key == "" || rec.Stored.Version == 0 {
			return fmt.Errorf("%w: record without a key", errMalformed)
		}
		r.state.records = r.state.records.With(Record{rec.Stored.Key, rec.Stored.Value, rec.Stored.Version})
	case *metapb.Record_Deleted:
		r.tombstones.add(rec.Deleted.Name, rec.Deleted.Suffix)
	case *metapb.Record_Database:
		db, err := databaseFrom(rec.Database)
		r.dbs = append(r.dbs, db)
		return err
	case *metapb.Record_End:
		if r.ended = rec.End.Records == r.count; !r.ended {
			return fmt.Errorf("%w: %d were written", errMalformed, rec.End.Records)
		}
	default:
		return fmt.Errorf("%w: of a kind that this version does not know; a newer version wrote it", errMalformed)
	}
	return nil
}

// changeConfig changes a layer in place: no other goroutine has seen it yet.
func (r *snapshotReader) changeConfig(c *metapb.ConfigChange) {
	if c.Node == "" {
		change(&r.state.cluster, c)
		return
	}
	l := r.state.perNode[c.Node]
	change(&l, c)
	r.state.perNode[c.Node] = l
}
