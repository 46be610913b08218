package bench

import (
	"fmt"
	"strconv"
	"time"
)

// documents makes the ids and the bodies of documents.
type documents struct {
	random   bool   // ids are spread over the key space instead of ascending
	size     int    // bytes of a document's JSON, about
	idPrefix string // of ascending ids
	text     text
}

// newDocuments returns what a run writes. No other run has the same ascending ids.
func newDocuments(cfg Config) *documents {
	now := uint64(time.Now().UnixNano())
	return &documents{random: cfg.RandomIDs, size: cfg.DocSize, idPrefix: fmt.Sprintf("%016x%016x", mix(now), mix(now+1)), text: newText(cfg.DocSize)}
}

// appendID appends the id of document i: 32 hexadecimal digits, as CouchDB's own
// sequential algorithm makes them (a prefix and a counter), or, when random ids
// are wanted, spread over the key space.
func (d *documents) appendID(dst []byte, i int64) []byte {
	if d.random {
		return appendHex(appendHex(dst, mix(uint64(i)), 16), uint64(i), 16)
	}
	return appendHex(append(dst, d.idPrefix[:26]...), uint64(i), 6)
}

// appendHex appends the last digits of n, but all that are not zero.
func appendHex(dst []byte, n uint64, digits int) []byte {
	for ; digits < 16 && n>>(4*digits) > 0; digits++ {
	}
	for digits--; digits >= 0; digits-- {
		dst = append(dst, "0123456789abcdef"[n>>(4*digits)&15])
	}
	return dst
}

// mix is the finalizer of splitmix64: a bijection that looks random.
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// text is the source of the texts in the documents: words in an order that looks random.
// It is made once, because to make it for each document would cost more than all the rest
// of the client.
type text struct {
	words  []byte
	starts []int32 // where each word begins
}

// textWords is after how many documents the texts come again: so many that no
// block of any database holds two that are the same.
const textWords = 1 << 16

// newText makes the text for documents of that size.
func newText(size int) text {
	var t text
	words := [...]string{"river ", "stone ", "winter ", "garden ", "letter ", "mirror ", "summer ", "window "}
	for i := uint64(0); len(t.starts) < textWords; i++ {
		t.starts = append(t.starts, int32(len(t.words)))
		t.words = append(t.words, words[mix(i)%uint64(len(words))]...)
	}
	// a document may begin with the last word
	for all := len(t.words); len(t.words) < all+size; {
		t.words = append(t.words, t.words[:min(all, all+size-len(t.words))]...)
	}
	return t
}

// appendDoc appends a document of about the wanted size, with the id and the
// revision unless they are empty: a few fields of different types and text that
// compresses as text does.
func (d *documents) appendDoc(dst, id, rev []byte, n int64) []byte {
	start := len(dst)
	dst = append(dst, '{')
	if len(id) > 0 {
		dst = append(append(append(dst, `"_id":"`...), id...), `",`...)
	}
	if len(rev) > 0 {
		dst = append(append(append(dst, `"_rev":"`...), rev...), `",`...)
	}
	dst = append(dst, `"type":"reading","n":`...)
	dst = strconv.AppendInt(dst, n, 10)
	dst = append(dst, `,"value":`...)
	dst = strconv.AppendFloat(dst, float64(mix(uint64(n))%1_000_000)/1000, 'f', 3, 64)
	dst = append(dst, `,"tags":["alpha","beta","gamma"],"text":"`...)
	from := int(d.text.starts[n%textWords])
	length := max(d.size-len(`"}`)-(len(dst)-start), 0)
	return append(append(dst, d.text.words[from:from+length]...), `"}`...)
}
