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
)

// A snapshot is the magic, then records, each
//
//	length of the rest (varint) | kind (1) | fields
//
// in this order: one head, nodes, configuration, graves, databases sorted by
// name, one end that counts the records before it. Raft's snapshot store
// checks the bytes; the end record tells a short file from a whole one.
const (
	snapshotMagic  = "DIVANMETA\x01"
	snapshotBuffer = 64 << 10

	// maxRecord bounds a record, in bytes. It is far above what commands can
	// make of a database, each of which adds to it: what was once written must
	// be readable, or no node starts again.
	maxRecord = 16 * maxCommand
)

const (
	recordHead     = 1
	recordNode     = 2
	recordConfig   = 3
	recordGrave    = 4
	recordDatabase = 5
	recordEnd      = 6
)

const (
	headUUID   = 1
	headSecret = 2
	headFloor  = 3
	headIndex  = 4
	headTerm   = 5

	graveName   = 1
	graveSuffix = 2

	endRecords = 1
)

// snapshot is the state at one moment, to be written while commands go on.
type snapshot struct {
	state  *state
	graves *graves
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

func (w *recordWriter) write(kind byte, fields []byte) {
	if w.err != nil {
		return
	}
	var head [binary.MaxVarintLen64 + 1]byte
	n := binary.PutUvarint(head[:], uint64(len(fields)+1))
	head[n] = kind
	if _, w.err = w.w.Write(head[:n+1]); w.err == nil {
		_, w.err = w.w.Write(fields)
	}
	w.buf = fields[:0]
	w.count++
}

func (s *snapshot) write(out *bufio.Writer) error {
	if _, err := out.WriteString(snapshotMagic); err != nil {
		return err
	}
	w := &recordWriter{w: out}
	b := appendText(w.buf, headUUID, s.state.uuid)
	b = appendText(b, headSecret, s.state.secret)
	b = appendNumber(b, headFloor, uint64(s.graves.floor))
	b = appendNumber(b, headIndex, s.state.index)
	w.write(recordHead, appendNumber(b, headTerm, s.state.term))
	for _, n := range s.state.sortedNodes() {
		w.write(recordNode, n.appendBinary(w.buf))
	}
	writeLayer(w, "", s.state.cluster)
	for _, name := range slices.Sorted(maps.Keys(s.state.perNode)) {
		writeLayer(w, name, s.state.perNode[name])
	}
	for _, g := range s.graves.queue {
		w.write(recordGrave, appendNumber(appendText(w.buf, graveName, g.name), graveSuffix, uint64(g.suffix)))
	}
	for db := range s.state.dbs.All() {
		w.write(recordDatabase, db.appendBinary(w.buf))
	}
	w.write(recordEnd, appendNumber(w.buf, endRecords, w.count))
	return w.err
}

func writeLayer(w *recordWriter, node string, l config.Layer) {
	for _, section := range slices.Sorted(maps.Keys(l.Set)) {
		for _, key := range slices.Sorted(maps.Keys(l.Set[section])) {
			c := configCommand{op: configPut, node: node, section: section, key: key, value: l.Set[section][key]}
			w.write(recordConfig, c.appendBinary(w.buf))
		}
	}
	for _, section := range slices.Sorted(maps.Keys(l.Hidden)) {
		for _, key := range slices.Sorted(maps.Keys(l.Hidden[section])) {
			c := configCommand{op: configHide, node: node, section: section, key: key}
			w.write(recordConfig, c.appendBinary(w.buf))
		}
	}
}

// snapshotReader builds a state from records.
type snapshotReader struct {
	state  *state
	graves *graves
	dbs    []*Database
	count  uint64
	ended  bool
}

// readSnapshot reads what write wrote. Whatever it is given, it returns an
// error or a state that satisfies check.
func readSnapshot(in *bufio.Reader) (*state, *graves, error) {
	magic := make([]byte, len(snapshotMagic))
	if _, err := io.ReadFull(in, magic); err != nil || string(magic) != snapshotMagic {
		return nil, nil, fmt.Errorf("%w: no snapshot of a known version", errMalformed)
	}
	r := &snapshotReader{
		state:  &state{nodes: map[string]Node{}, perNode: map[string]config.Layer{}},
		graves: newGraves(),
	}
	var buf bytes.Buffer
	for !r.ended {
		size, err := binary.ReadUvarint(in)
		if err != nil || size == 0 || size > maxRecord {
			return nil, nil, fmt.Errorf("%w: length of record %d", errMalformed, r.count)
		}
		buf.Reset() // grows as bytes come, not as a length promises them
		if _, err := io.CopyN(&buf, in, int64(size)); err != nil {
			return nil, nil, fmt.Errorf("%w: record %d is cut off", errMalformed, r.count)
		}
		b := buf.Bytes()
		if err := r.record(b[0], b[1:]); err != nil {
			return nil, nil, err
		}
		r.count++
	}
	r.state.dbs = Databases{build(r.dbs)}
	return r.state, r.graves, r.state.check()
}

func (r *snapshotReader) record(kind byte, b []byte) error {
	switch kind {
	case recordHead:
		return r.head(b)
	case recordNode:
		n, err := decodeNode(b)
		r.state.nodes[n.Name] = n
		return err
	case recordConfig:
		c, err := decodeConfig(b)
		if err == nil {
			r.putConfig(c)
		}
		return err
	case recordGrave:
		return r.grave(b)
	case recordDatabase:
		db, err := decodeDatabase(b)
		r.dbs = append(r.dbs, db)
		return err
	case recordEnd:
		r.ended = true
		return eachField(b, func(f field) error {
			if f.num == endRecords && f.number != r.count {
				return fmt.Errorf("%w: %d records where %d were written", errMalformed, r.count, f.number)
			}
			return nil
		})
	}
	return fmt.Errorf("%w: record of unknown kind %d; a newer version wrote it", errMalformed, kind)
}

// putConfig adds to the layer in place: nobody else has seen it yet.
func (r *snapshotReader) putConfig(c configCommand) {
	l := r.state.cluster
	if c.node != "" {
		l = r.state.perNode[c.node]
	}
	if c.op == configHide {
		l.Hide(c.section, c.key)
	} else {
		l.Put(c.section, c.key, c.value)
	}
	if c.node != "" {
		r.state.perNode[c.node] = l
	} else {
		r.state.cluster = l
	}
}

func (r *snapshotReader) head(b []byte) error {
	return eachField(b, func(f field) error {
		switch f.num {
		case headUUID:
			r.state.uuid = f.text()
		case headSecret:
			r.state.secret = f.text()
		case headFloor:
			r.graves.floor = int64(f.number)
		case headIndex:
			r.state.index = f.number
		case headTerm:
			r.state.term = f.number
		}
		return nil
	})
}

func (r *snapshotReader) grave(b []byte) error {
	var g grave
	err := eachField(b, func(f field) error {
		switch f.num {
		case graveName:
			g.name = f.text()
		case graveSuffix:
			g.suffix = int64(f.number)
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.graves.bury(g.name, g.suffix)
	return nil
}

// build makes a balanced tree of sorted databases.
func build(dbs []*Database) *treeNode {
	if len(dbs) == 0 {
		return nil
	}
	at := len(dbs) / 2
	return join(build(dbs[:at]), dbs[at], build(dbs[at+1:]))
}
