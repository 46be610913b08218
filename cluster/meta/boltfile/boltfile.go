// Package boltfile reads a file of bbolt and believes nothing of it. bbolt itself
// ends the process when a page is not what it expects, on goroutines of its own,
// and has checksums for its two meta pages only.
package boltfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
)

// What bbolt's pages look like, version 2 of its format. Numbers are in the
// order of the machine.
const (
	magic      = 0xED0CDAED
	version    = 2
	headerSize = 16 // id u64, flags u16, count u16, overflow u32
	metaSize   = 64 // the last eight bytes are a checksum of the others

	branchPage, leafPage, metaPage = 1, 2, 4

	leafElement   = 16 // flags u32, position u32, size of key u32, of value u32
	branchElement = 16 // position u32, size of key u32, page u64
	bucketFlag    = 1  // the value is a bucket: page u64, sequence u64, and a page when that is 0
	bucketHeader  = 16

	minPage, maxPage = 1 << 10, 16 << 20
	maxDepth         = 64
)

// Visitor is told what a file has, bucket by bucket, in the order of the keys.
type Visitor struct {
	// Pair is a key with its value, in a bucket that is none inside of another.
	// Both belong to the reader.
	Pair func(bucket string, key, value []byte)
	// Problem is something that is not as it must be. Reading goes on where that
	// makes sense.
	Problem func(text string)
}

// Read reads the file as its last transaction has left it. It must have these
// buckets and no other.
func Read(file io.ReaderAt, size int64, buckets []string, v Visitor) {
	r := &reader{file: file, size: size, v: v, used: map[uint64]bool{}}
	root, ok := r.metas()
	if !ok {
		return
	}
	seen := 0
	r.tree(place{page: root}, func(key, value []byte, flags uint32) {
		if flags&bucketFlag == 0 || len(value) < bucketHeader {
			r.problemf("%q at the top is no bucket", key)
			return
		}
		name := string(key)
		if !slices.Contains(buckets, name) {
			r.problemf("a bucket %q", name)
			return
		}
		seen++
		at := place{page: order().Uint64(value)}
		if at.page == 0 {
			at.inline = bytes.Clone(value[bucketHeader:])
		}
		r.tree(at, func(key, value []byte, flags uint32) {
			if flags != 0 {
				r.problemf("bucket %s: a key with flags %x", name, flags)
				return
			}
			r.v.Pair(name, key, value)
		})
	})
	if seen != len(buckets) {
		r.problemf("%d buckets of %d", seen, len(buckets))
	}
}

func order() binary.ByteOrder { return binary.NativeEndian }

type reader struct {
	file     io.ReaderAt
	size     int64
	v        Visitor
	pageSize int64
	pages    uint64 // from here on none was ever used
	used     map[uint64]bool
}

func (r *reader) problemf(format string, args ...any) { r.v.Problem(fmt.Sprintf(format, args...)) }

// metas reads the two meta pages and returns the root of the later transaction.
// Both must be sound: bbolt would do with one of them, and so forget the last
// transaction when that has the other.
func (r *reader) metas() (root uint64, ok bool) {
	first, ok := r.meta(0)
	if !ok {
		return 0, false
	}
	r.pageSize = int64(order().Uint32(first[8:]))
	if r.pageSize < minPage || r.pageSize > maxPage || r.pageSize&(r.pageSize-1) != 0 {
		r.problemf("page size %d", r.pageSize)
		return 0, false
	}
	second, ok := r.meta(1)
	if !ok {
		return 0, false
	}
	if order().Uint64(second[48:]) > order().Uint64(first[48:]) {
		first = second
	}
	r.pages = order().Uint64(first[40:])
	return order().Uint64(first[16:]), true
}

func (r *reader) meta(page int64) ([]byte, bool) {
	b := make([]byte, headerSize+metaSize)
	if _, err := r.file.ReadAt(b, page*r.pageSize); err != nil {
		r.problemf("meta page %d: %v", page, err)
		return nil, false
	}
	m := b[headerSize:]
	sum := fnv.New64a()
	_, _ = sum.Write(m[:metaSize-8]) // never fails
	if order().Uint32(m) != magic || order().Uint32(m[4:]) != version || sum.Sum64() != order().Uint64(m[metaSize-8:]) {
		r.problemf("meta page %d is damaged", page)
		return nil, false
	}
	return m, true
}

// place is a page of the file, or one inside of a value.
type place struct {
	page   uint64
	inline []byte
}

// bounds limits the keys of a page; nil: no bound.
type bounds struct {
	lo, hi []byte
	depth  int // of pages above
}

// tree visits the leaves of a bucket.
func (r *reader) tree(at place, leaf func(key, value []byte, flags uint32)) {
	var last []byte
	r.walk(at, bounds{}, func(key, value []byte, flags uint32) {
		if last != nil && bytes.Compare(key, last) <= 0 {
			r.problemf("page %d: keys out of order", at.page)
			return
		}
		last = bytes.Clone(key)
		leaf(key, value, flags)
	})
}

func (r *reader) walk(at place, b bounds, leaf func(key, value []byte, flags uint32)) {
	page := at.inline
	if page == nil {
		var ok bool
		if page, ok = r.page(at.page); !ok {
			return
		}
	}
	if len(page) < headerSize || b.depth > maxDepth {
		r.problemf("page %d is cut off, or too deep", at.page)
		return
	}
	flags, count := order().Uint16(page[8:]), int(order().Uint16(page[10:]))
	switch {
	case flags == leafPage:
		r.leaves(at.page, page, count, b, leaf)
	case flags == branchPage && count > 0:
		r.branches(at.page, page, count, b, leaf)
	default:
		r.problemf("page %d: flags %x, %d elements", at.page, flags, count)
	}
}

// page reads a page with those behind it that belong to it.
func (r *reader) page(id uint64) ([]byte, bool) {
	if id < 2 || id >= r.pages || int64(id) > r.size/r.pageSize {
		r.problemf("page %d does not exist", id)
		return nil, false
	}
	head := make([]byte, headerSize)
	if _, err := r.file.ReadAt(head, int64(id)*r.pageSize); err != nil {
		r.problemf("page %d: %v", id, err)
		return nil, false
	}
	more := uint64(order().Uint32(head[12:]))
	if order().Uint64(head) != id || id+more >= r.pages || int64(id+more+1)*r.pageSize > r.size {
		r.problemf("page %d has another number, or is longer than the file", id)
		return nil, false
	}
	for n := id; n <= id+more; n++ {
		if r.used[n] {
			r.problemf("page %d is used twice", n)
			return nil, false
		}
		r.used[n] = true
	}
	page := make([]byte, int64(more+1)*r.pageSize)
	if _, err := r.file.ReadAt(page, int64(id)*r.pageSize); err != nil {
		r.problemf("page %d: %v", id, err)
		return nil, false
	}
	return page, true
}

// part cuts a key or a value out of a page.
func part(page []byte, at, size int64) ([]byte, bool) {
	if at < headerSize || at+size > int64(len(page)) {
		return nil, false
	}
	return page[at : at+size], true
}

func (r *reader) leaves(id uint64, page []byte, count int, b bounds, leaf func(key, value []byte, flags uint32)) {
	for i := range count {
		at := int64(headerSize + i*leafElement)
		e, ok := part(page, at, leafElement)
		if !ok {
			r.problemf("page %d: %d elements", id, count)
			return
		}
		ksize := int64(order().Uint32(e[8:]))
		key, ok := part(page, at+int64(order().Uint32(e[4:])), ksize)
		value, ok2 := part(page, at+int64(order().Uint32(e[4:]))+ksize, int64(order().Uint32(e[12:])))
		if !ok || !ok2 || !b.hold(key) {
			r.problemf("page %d: element %d", id, i)
			continue
		}
		leaf(key, value, order().Uint32(e))
	}
}

func (b bounds) hold(key []byte) bool {
	return (b.lo == nil || bytes.Compare(key, b.lo) >= 0) && (b.hi == nil || bytes.Compare(key, b.hi) < 0)
}

func (r *reader) branches(id uint64, page []byte, count int, b bounds, leaf func(key, value []byte, flags uint32)) {
	type child struct {
		page uint64
		key  []byte
	}
	children := make([]child, 0, count)
	for i := range count {
		at := int64(headerSize + i*branchElement)
		e, ok := part(page, at, branchElement)
		if !ok {
			r.problemf("page %d: %d elements", id, count)
			return
		}
		key, ok := part(page, at+int64(order().Uint32(e)), int64(order().Uint32(e[4:])))
		if !ok || i > 0 && !b.hold(key) || i > 0 && bytes.Compare(key, children[len(children)-1].key) <= 0 {
			r.problemf("page %d: element %d", id, i)
			return
		}
		children = append(children, child{order().Uint64(e[8:]), key})
	}
	for i, c := range children {
		within := b
		within.depth++
		if i > 0 {
			within.lo = c.key
		}
		if i+1 < len(children) {
			within.hi = children[i+1].key
		}
		r.walk(place{page: c.page}, within, leaf)
	}
}
