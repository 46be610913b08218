package job

import (
	"encoding/json"
	"errors"
	"fmt"
)

// maxEncoded bounds a job as it is kept, in bytes.
const maxEncoded = 48 << 10

// Encode returns the job as it is kept. Of a history that is too long the oldest
// entries are left out.
func (j *Job) Encode() ([]byte, error) {
	for {
		out, err := json.Marshal(j)
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
	j := &Job{}
	if err := json.Unmarshal(text, j); err != nil {
		return nil, fmt.Errorf("read job: %w", err)
	}
	if j.Node == "" || j.Database == "" || j.Step.place() < 0 || Halves(j.Range) == nil {
		return nil, errNoJob
	}
	return j, nil
}
