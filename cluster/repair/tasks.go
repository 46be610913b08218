package repair

import (
	"sync/atomic"
	"time"
)

// progress is what a push tells about itself while it runs, and what it knows
// from earlier runs of the same pair.
type progress struct {
	stall *time.Timer // ends a push that makes no progress; nil: none does
	held  bool        // the source's log of purges waits for the target; belongs to the push

	from, at, to atomic.Uint64 // sequences of the source: where it began, is, will end
	docs, bytes  atomic.Uint64 // revisions and bytes of attachments written to the target
	updated      atomic.Int64  // unix milliseconds
}

// stallTime is how long a push may make no progress. A node that is gone is
// noticed long before; this is for one that answers pings and no calls.
const stallTime = 5 * time.Minute

func (p *progress) touch() {
	p.updated.Store(time.Now().UnixMilli())
	if p.stall != nil {
		p.stall.Reset(stallTime)
	}
}

// rest says that the push waits on purpose, until touch.
func (p *progress) rest() {
	if p.stall != nil {
		p.stall.Stop()
	}
}

func (p *progress) begin(from, to uint64) {
	p.from.Store(from)
	p.at.Store(from)
	p.to.Store(to)
	p.touch()
}

func (p *progress) move(at uint64) {
	p.at.Store(at)
	p.touch()
}

func (p *progress) wrote(docs int) {
	p.docs.Add(uint64(docs))
	p.touch()
}

func (p *progress) sent(bytes int) {
	p.bytes.Add(uint64(bytes))
	p.touch()
}
