// Package ordered brings the operations of a batch to Pebble keyspace by keyspace.
// A document has a key in three of them, and its memtable finds the place of a key
// that follows the one before at once, where it would search for one in another keyspace.
package ordered

import (
	"github.com/cockroachdb/pebble/v2"

	"divan/storage/keyspace"
)

// Parts are the operations of a batch that wait for those on documents. The zero value has
// none. Operations on one key keep their order: all of a keyspace wait, or none.
type Parts struct{ heads, seqs part }

// part is the operations on one keyspace: their keys and values one after the other.
type part struct {
	ops  []op
	text []byte
}

// op is one operation, with lengths in bytes.
type op struct {
	key, value int32
	deletes    bool
}

// of returns where an operation on a key waits, nil when it does not.
func (p *Parts) of(key []byte) *part {
	switch key[0] {
	case keyspace.Heads:
		return &p.heads
	case keyspace.Sequence:
		return &p.seqs
	default:
		return nil
	}
}

// Set sets a key in b, at last when Move is called.
func (p *Parts) Set(b *pebble.Batch, key, value []byte) error {
	later := p.of(key)
	if later == nil {
		return b.Set(key, value, nil)
	}
	later.add(op{key: int32(len(key)), value: int32(len(value))}, key, value)
	return nil
}

// Delete deletes a key in b, as Set.
func (p *Parts) Delete(b *pebble.Batch, key []byte) error {
	later := p.of(key)
	if later == nil {
		return b.Delete(key, nil)
	}
	later.add(op{key: int32(len(key)), deletes: true}, key, nil)
	return nil
}

// fewOps is how many operations there is space for from the first on.
const fewOps = 16

func (p *part) add(o op, key, value []byte) {
	if p.ops == nil {
		p.ops = make([]op, 0, fewOps)
		p.text = make([]byte, 0, fewOps*2*(len(key)+len(value)))
	}
	p.ops = append(p.ops, o)
	p.text = append(append(p.text, key...), value...)
}

// Len returns how many bytes wait, about.
func (p *Parts) Len() int { return len(p.heads.text) + len(p.seqs.text) }

// Move brings what waits to b.
func (p *Parts) Move(b *pebble.Batch) error {
	for _, part := range []*part{&p.heads, &p.seqs} {
		text := part.text
		for _, o := range part.ops {
			key, value := text[:o.key], text[o.key:o.key+o.value]
			text = text[o.key+o.value:]
			var err error
			switch {
			case o.deletes:
				err = b.Delete(key, nil)
			default:
				err = b.Set(key, value, nil)
			}
			if err != nil {
				return err
			}
		}
	}
	*p = Parts{}
	return nil
}
