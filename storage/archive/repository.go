package archive

import (
	"time"

	"divan/storage/fault"
)

// MaxRepository bounds the repository object, in bytes.
const MaxRepository = 1 << 20

// Repository is created once and says what the place is.
type Repository struct {
	Format  int       `json:"format"`
	ID      UUID      `json:"id"`
	Made    time.Time `json:"made"`
	Cluster UUID      `json:"cluster"` // that owns it
	// Key is plain, or there is one of Keys for each recipient.
	Key  *Key         `json:"key,omitempty"`
	Keys []WrappedKey `json:"keys,omitempty"`
}

// WrappedKey is the key of a repository, encrypted.
type WrappedKey struct {
	Recipient string `json:"recipient"` // as age names it
	Key       []byte `json:"key"`       // an age file
}

// Encode returns the bytes of the repository object.
func (r *Repository) Encode() ([]byte, error) {
	r.Format = Format
	if err := r.check(); err != nil {
		return nil, err
	}
	return (&sealer{max: MaxRepository}).seal(r)
}

// DecodeRepository reads the repository object.
func DecodeRepository(text []byte) (*Repository, error) {
	r := &Repository{}
	if err := (&sealer{max: MaxRepository}).open(text, r); err != nil {
		return nil, err
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *Repository) check() error {
	if err := checkFormat(r.Format); err != nil {
		return err
	}
	if (r.Key == nil) == (len(r.Keys) == 0) {
		return damaged("the repository has no key, or two kinds of them")
	}
	return nil
}

// checkFormat tells a newer format from damage.
func checkFormat(is int) error {
	switch {
	case is > Format:
		return fault.Newf(fault.Misconfigured, "The backup is of format %d; this program knows formats up to %d.", is, Format)
	case is != Format:
		return damaged("it is of no format")
	}
	return nil
}
