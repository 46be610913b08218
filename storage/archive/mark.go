package archive

import (
	"errors"
	"time"
)

const (
	// MaxMark bounds a mark, in bytes.
	MaxMark = 16 << 20
	// MaxMarked bounds the objects of a mark, so that it stays below MaxMark.
	MaxMarked = 100_000
	// MarkAge is how old a mark has to be before anything of it is removed.
	MarkAge = 24 * time.Hour
)

// Mark says what is about to be removed: headers first, then objects that no header needs by
// then either.
type Mark struct {
	Format  int     `json:"format"`
	ID      RunID   `json:"id"` // when it was made, too
	Backups []RunID `json:"backups,omitempty"`
	Objects []Name  `json:"objects,omitempty"`
}

// Due reports whether a mark is old enough.
func (m *Mark) Due(now time.Time) bool { return now.Sub(m.ID.Time()) >= MarkAge }

func markSealer(key *Key) *sealer {
	return &sealer{max: MaxMark, purpose: purposeMark, key: key, mac: true}
}

// Encode returns the bytes of the mark.
func (m *Mark) Encode(key *Key) ([]byte, error) {
	m.Format = Format
	if len(m.Objects) > MaxMarked || len(m.Backups) > MaxMarked {
		return nil, errors.New("write a mark: it has too many objects")
	}
	return markSealer(key).seal(m)
}

// DecodeMark reads a mark, which was written with the key.
func DecodeMark(id RunID, text []byte, key *Key) (*Mark, error) {
	m := &Mark{}
	if err := markSealer(key).open(text, m); err != nil {
		return nil, err
	}
	if err := checkFormat(m.Format); err != nil {
		return nil, err
	}
	if m.ID != id {
		return nil, damaged("a mark has the name of another one")
	}
	return m, nil
}
