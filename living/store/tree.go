package store

import (
	"encoding/binary"
	"fmt"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/mod/sumdb/tlog"
)

// number is a key or value that sorts as it counts.
func number(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

func parseNumber(b []byte) (int64, bool) {
	if len(b) < 8 {
		return 0, false
	}
	n := int64(binary.BigEndian.Uint64(b))
	return n, n >= 0
}

// hashes reads the stored hashes of a transparency log from a bucket.
func hashes(bucket *bolt.Bucket) tlog.HashReader {
	return tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		out := make([]tlog.Hash, len(indexes))
		for i, index := range indexes {
			raw := bucket.Get(number(index))
			if len(raw) != tlog.HashSize {
				return nil, fmt.Errorf("the log has no hash %d", index)
			}
			copy(out[i][:], raw)
		}
		return out, nil
	})
}

// appendRecord stores the hashes that record n adds and returns the new tree.
func appendRecord(bucket *bolt.Bucket, n int64, raw []byte) (tlog.Tree, error) {
	reader := hashes(bucket)
	added, err := tlog.StoredHashes(n, raw, reader)
	if err != nil {
		return tlog.Tree{}, err
	}
	first := tlog.StoredHashIndex(0, n)
	for i, h := range added {
		if err := bucket.Put(number(first+int64(i)), h[:]); err != nil {
			return tlog.Tree{}, err
		}
	}
	root, err := tlog.TreeHash(n+1, reader)
	return tlog.Tree{N: n + 1, Hash: root}, err
}

// grown is a tree kept in memory, for logs that are read from the start.
type grown struct {
	hashes []tlog.Hash
	n      int64
}

// ReadHashes implements [tlog.HashReader].
func (g *grown) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		if index >= int64(len(g.hashes)) {
			return nil, fmt.Errorf("the log has no hash %d", index)
		}
		out[i] = g.hashes[index]
	}
	return out, nil
}

func (g *grown) add(raw []byte) error {
	added, err := tlog.StoredHashes(g.n, raw, g)
	g.hashes = append(g.hashes, added...)
	g.n++
	return err
}

func (g *grown) root(n int64) (tlog.Hash, error) { return tlog.TreeHash(n, g) }
