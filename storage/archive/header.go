package archive

// MaxHeader bounds a header, in bytes.
const MaxHeader = 1 << 20

// Header is a backup: when it is there, all that it names is.
type Header struct {
	Format int   `json:"format"`
	ID     RunID `json:"id"` // when it was made, too
	// Parent is the backup that this one continues.
	Parent *RunID `json:"parent,omitempty"`
	// Index and Term are those of the metadata at the cut. Backups are ordered by Index: clocks
	// may be wrong.
	Index uint64 `json:"raft_index"`
	Term  uint64 `json:"raft_term"`
	// Aligned: all databases but those that Moments counts are of one moment.
	Aligned bool `json:"aligned"`
	// Moments, Partial and MayLack count databases with a moment of their own, and shards without
	// a copy or with fewer than a quorum. The pages name them: names are not for the header.
	Moments uint64   `json:"moments"`
	Partial uint64   `json:"partial"`
	MayLack uint64   `json:"may_lack"`
	LeftOut []string `json:"left_out,omitempty"` // which secrets are not in the metadata
	Counts  Counts   `json:"counts"`
	// Metadata is in a pack; nil: none was taken.
	Metadata *Ref      `json:"metadata,omitempty"`
	Pages    []PageRef `json:"pages"` // parts ascend; one without databases has no page
}

// Counts say how much a backup is.
type Counts struct {
	Databases uint64 `json:"databases"`
	Shards    uint64 `json:"shards"`
	Live      uint64 `json:"documents"`
	Deleted   uint64 `json:"deleted"`
	NewBytes  uint64 `json:"new_bytes"` // that were stored for it
	AllBytes  uint64 `json:"all_bytes"` // that it needs
}

// PageRef names the page of a part.
type PageRef struct {
	Part byte `json:"part"`
	Object
}

func headerSealer(key *Key) *sealer {
	return &sealer{max: MaxHeader, purpose: purposeHeader, key: key, mac: true}
}

// Encode returns the bytes of the header.
func (h *Header) Encode(key *Key) ([]byte, error) {
	h.Format = Format
	if err := h.check(h.ID); err != nil {
		return nil, err
	}
	return headerSealer(key).seal(h)
}

// DecodeHeader reads the header of a backup. Without a key it may be forged.
func DecodeHeader(id RunID, text []byte, key *Key) (*Header, error) {
	h := &Header{}
	if err := headerSealer(key).open(text, h); err != nil {
		return nil, err
	}
	if err := h.check(id); err != nil {
		return nil, err
	}
	return h, nil
}

func (h *Header) check(id RunID) error {
	if err := checkFormat(h.Format); err != nil {
		return err
	}
	if h.ID != id {
		return damaged("a header has the name of another one")
	}
	for i := range h.Pages {
		if h.Pages[i].Name.Class != ClassPage || i > 0 && h.Pages[i-1].Part >= h.Pages[i].Part {
			return damaged("the pages of a header make no sense")
		}
	}
	if m := h.Metadata; m != nil && (m.Kind != KindMetadata || !m.valid()) {
		return damaged("the metadata of a header makes no sense")
	}
	return nil
}
