package instance

import (
	"errors"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// tableFile is a table that a flush or a compaction writes. It looks for space as it
// goes, so that what can wait, or be made again, leaves the last of the disk to
// what cannot.
type tableFile struct {
	plainFile
	name       string
	compaction bool
	allowed    int64 // bytes that may be written before it looks again
}

// spaceStep is how many bytes of a table are written between two looks at the space
// that is left.
const spaceStep = 1 << 20

var errClosing = errors.New("the store is being closed")

// Write implements vfs.File. The table of a store that stops or is closed ends with
// an error: the flush is repeated, see instanceFS, and a compaction is given up.
func (f *tableFile) Write(p []byte) (int, error) {
	err := f.mayWrite(int64(len(p)))
	n := 0
	if err == nil {
		n, err = f.File.Write(p)
	}
	return n, f.failed(err)
}

func (f *tableFile) mayWrite(n int64) error {
	if err := f.i.Err(); err != nil {
		return err
	}
	if f.compaction {
		select {
		case <-f.i.closing:
			return errClosing
		default:
		}
	}
	if f.allowed -= n; f.allowed > 0 {
		return nil
	}
	f.allowed = spaceStep
	return tableSpace(f.i, f.compaction)
}

// tableSpace looks whether there is space for more of a table.
func tableSpace(i *Instance, compaction bool) error {
	if i.shared.TableSpace == nil || !i.Opened() {
		return nil
	}
	return i.shared.TableSpace(i.kind.Derived, compaction)
}

// Sync implements vfs.File.
func (f *tableFile) Sync() error {
	err := f.i.Err()
	if err == nil {
		err = f.File.Sync()
	}
	return f.failed(err)
}

// failed notes an error of the table. While the store is being opened the error
// stops it, and the flush goes on to its end as if all was well.
func (f *tableFile) failed(err error) error {
	if err == nil {
		return nil
	}
	f.i.unfinished.broken(f.name)
	if !f.i.Opened() {
		_ = f.i.Fail(err) // kept for every later call
	}
	return err
}

// unfinished is the tables of flushes and compactions that have not ended. When one
// of them cannot be written, no manifest will name the others of the same job.
type unfinished struct {
	mu   sync.Mutex
	jobs map[int]*tableJob
	lost map[string]struct{} // tables that no manifest will name
	// whether a manifest names what it was last told is not known
	doubt bool
}

type tableJob struct {
	tables []string
	broken bool
}

// created notes a table of a job.
func (u *unfinished) created(info pebble.TableCreateInfo) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.jobs == nil {
		u.jobs, u.lost = map[int]*tableJob{}, map[string]struct{}{}
	}
	j := u.jobs[info.JobID]
	if j == nil {
		j = &tableJob{}
		u.jobs[info.JobID] = j
	}
	if j.tables = append(j.tables, info.Path); j.broken {
		u.lost[info.Path] = struct{}{}
	}
}

// ended forgets the tables of a job.
func (u *unfinished) ended(job int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.jobs, job)
}

// broken notes that a table is not whole.
func (u *unfinished) broken(table string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.doubt {
		return
	}
	for _, j := range u.jobs {
		for _, name := range j.tables {
			if name == table {
				j.broken = true
				for _, name := range j.tables {
					u.lost[name] = struct{}{}
				}
				return
			}
		}
	}
}

// unsure notes that a manifest could not be written: what it names is not known.
func (u *unfinished) unsure() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.doubt = true
}

// has reports whether no manifest can name a table. It is asked once.
func (u *unfinished) has(table string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, ok := u.lost[table]
	delete(u.lost, table)
	return ok
}
