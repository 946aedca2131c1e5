package storetest

import (
	"bytes"
	"fmt"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/living"
)

// Memory is the smallest store that passes the suite: a reference for the others, and
// what hermetic replays run on. It is not for concurrent use.
type Memory struct {
	owners map[string]*shelf
}

type shelf struct {
	versions [][]byte // by version
	records  [][]byte
	reports  map[canon.Digest]bool
}

// NewMemory returns an empty store.
func NewMemory() *Memory { return &Memory{owners: map[string]*shelf{}} }

// Load implements [living.Store].
func (m *Memory) Load(owner string) (*living.State, error) {
	s := m.owners[owner]
	if s == nil {
		return nil, &living.NotFoundError{What: fmt.Sprintf("owner %q", owner)}
	}
	doc, err := living.DecodeDocument(s.versions[len(s.versions)-1])
	if err != nil {
		return nil, err
	}
	last := s.records[len(s.records)-1]
	return &living.State{Document: doc, Tail: living.Tail{Size: int64(len(s.records)), Last: canon.Sum(last)}}, nil
}

// Commit implements [living.Store].
func (m *Memory) Commit(doc *living.Document, rec *living.Record) error {
	raw, err := rec.Bytes()
	if err != nil {
		return err
	}
	s := m.owners[doc.Owner()]
	if s == nil {
		s = &shelf{reports: map[canon.Digest]bool{}}
	}
	var tail living.Tail
	version := int64(-1)
	if n := len(s.records); n > 0 {
		tail = living.Tail{Size: int64(n), Last: canon.Sum(s.records[n-1])}
		version = int64(len(s.versions) - 1)
	}
	if err := rec.Follows(doc, tail, version); err != nil {
		return err
	}
	s.records = append(s.records, raw)
	if doc.Version() > version {
		s.versions = append(s.versions, bytes.Clone(doc.Bytes()))
	}
	s.reports[rec.ReportSHA256] = true
	m.owners[doc.Owner()] = s
	return nil
}

// Ingested implements [living.Store].
func (m *Memory) Ingested(owner string, report canon.Digest) (bool, error) {
	s := m.owners[owner]
	return s != nil && s.reports[report], nil
}

// Version implements [living.Store].
func (m *Memory) Version(owner string, version int64) (*living.Document, error) {
	s := m.owners[owner]
	if s == nil || version < 0 || version >= int64(len(s.versions)) {
		return nil, &living.NotFoundError{What: fmt.Sprintf("version %d of %q", version, owner)}
	}
	return living.DecodeDocument(s.versions[version])
}

// Records implements [living.Store].
func (m *Memory) Records(owner string, from int64, visit func(raw []byte) error) error {
	s := m.owners[owner]
	if s == nil {
		return &living.NotFoundError{What: fmt.Sprintf("owner %q", owner)}
	}
	for i := from; i < int64(len(s.records)); i++ {
		if err := visit(s.records[i]); err != nil {
			return err
		}
	}
	return nil
}
