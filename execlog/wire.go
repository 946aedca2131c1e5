package execlog

import (
	"encoding/binary"
	"errors"
)

// The wire form of Protocol Buffers, as far as a reader of logs needs it (protobuf.dev, "Encoding").
const (
	wireVarint = 0
	wire64     = 1
	wireBytes  = 2
	wire32     = 5
)

var errWire = errors.New("is no valid Protocol Buffers message")

// field is one field of a message.
type field struct {
	number int
	wire   int
	value  uint64 // of varints
	bytes  []byte // of strings, messages and packed numbers
}

// message yields its fields one after the other; err says why it stopped before its end.
type message struct {
	rest []byte
	err  error
}

func (m *message) next() (f field, ok bool) {
	if len(m.rest) == 0 || m.err != nil {
		return f, false
	}
	key, ok := m.varint()
	if !ok {
		return f, false
	}
	f.wire = int(key & 7)
	if key>>3 == 0 || key>>3 > 1<<29-1 {
		return m.fail()
	}
	f.number = int(key >> 3)
	switch f.wire {
	case wireVarint:
		f.value, ok = m.varint()
		return f, ok
	case wireBytes:
		size, ok := m.varint()
		if !ok || size > uint64(len(m.rest)) {
			return m.fail()
		}
		f.bytes, m.rest = m.rest[:size], m.rest[size:]
	case wire64, wire32:
		size := 8
		if f.wire == wire32 {
			size = 4
		}
		if len(m.rest) < size {
			return m.fail()
		}
		m.rest = m.rest[size:]
	default:
		return m.fail()
	}
	return f, true
}

func (m *message) fail() (field, bool) {
	m.err = errWire
	return field{}, false
}

func (m *message) varint() (uint64, bool) {
	v, n := binary.Uvarint(m.rest)
	if n <= 0 {
		m.err = errWire
		return 0, false
	}
	m.rest = m.rest[n:]
	return v, true
}

// ids appends the numbers of a repeated field, packed or not.
func (f field) ids(to []uint32) ([]uint32, error) {
	switch f.wire {
	case wireVarint:
		return append(to, uint32(f.value)), nil
	case wireBytes:
		m := message{rest: f.bytes}
		for len(m.rest) > 0 {
			v, ok := m.varint()
			if !ok {
				return to, m.err
			}
			to = append(to, uint32(v))
		}
		return to, nil
	}
	return to, errWire
}
