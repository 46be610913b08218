package job

import (
	"encoding/json"
	"errors"
	"fmt"
)

// maxEncoded bounds a job as it is kept, in bytes.
const maxEncoded = 48 << 10

// wrapped is how jobs are kept that programs which know only splits must take for none.
type wrapped struct {
	Job json.RawMessage `json:"job"`
}

// Encode returns the job as it is kept. Of a history that is too long the oldest
// entries are left out.
func (j *Job) Encode() ([]byte, error) {
	for {
		kept := *j
		if j.Type == Split {
			kept.Type = ""
		}
		out, err := json.Marshal(&kept)
		if err == nil && j.Type != Split {
			out, err = json.Marshal(wrapped{out})
		}
		if err != nil {
			return nil, fmt.Errorf("write job: %w", err)
		}
		if len(out) <= maxEncoded || len(j.History) <= 1 {
			return out, nil
		}
		j.History = j.History[len(j.History)/2:]
	}
}

var errNoJob = errors.New("no job of resharding")

// Decode is the inverse of Encode.
func Decode(text []byte) (*Job, error) {
	var other wrapped
	if err := json.Unmarshal(text, &other); err == nil && other.Job != nil {
		text = other.Job
	}
	j := &Job{}
	if err := json.Unmarshal(text, j); err != nil {
		return nil, fmt.Errorf("read job: %w", err)
	}
	if j.Type == "" {
		j.Type = Split
	}
	if j.Node == "" || j.Database == "" || j.Step.place() < 0 || !j.makesSense() {
		return nil, errNoJob
	}
	return j, nil
}

// makesSense reports whether a source has all that its type needs.
func (s *Source) makesSense() bool {
	switch s.Type {
	case Split:
		return Halves(s.Range) != nil
	case Merge:
		return len(s.Parts) > 1
	case Move:
		return s.To != "" && s.To != s.Node
	default:
		return false
	}
}
