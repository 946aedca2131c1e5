package execlog

import (
	"errors"
	"fmt"
	"slices"
)

// Kinds of entries of the compact form: fields of ExecLogEntry (Bazel, src/main/protobuf/spawn.proto).
const (
	entryInvocation = 2
	entryFile       = 3
	entryDirectory  = 4
	entrySymlink    = 5
	entrySet        = 6
	entrySpawn      = 7
	entryAction     = 8
	entryLinks      = 9
	entryRunfiles   = 10
)

// compact decodes an ExecLogEntry. Fields that it does not know are passed over, kinds of entries are counted.
func (r *reader) compact(data []byte) error {
	m := message{rest: data}
	var id uint32
	var kind int
	var payload []byte
	for f, ok := m.next(); ok; f, ok = m.next() {
		switch {
		case f.number == 1 && f.wire == wireVarint:
			id = uint32(f.value)
		case f.number > 1 && f.wire == wireBytes:
			kind, payload = f.number, f.bytes
		}
	}
	if m.err != nil {
		return m.err
	}
	var kept ref
	var err error
	switch kind {
	case entryInvocation:
		err = r.invocation(payload)
	case entryFile:
		kept, err = r.file3(payload, nil)
	case entryDirectory:
		var path ref
		if kept, path, err = r.directory(payload); err == nil {
			r.folders[id] = path
		}
	case entrySymlink:
		var text [3]ref
		if err = r.texts(payload, text[:]); err == nil {
			kept = r.keepFile(file{tag: tagSymlink, path: text[1], target: text[2]})
		}
	case entrySet:
		kept, err = r.inputSet(payload)
	case entrySpawn:
		err = r.spawn(payload)
	case entryAction:
		var text [5]ref
		err = r.texts(payload, text[:])
		r.log.symlinks = append(r.log.symlinks, symlink{text[1], text[2], r.label(text[3]), text[4]})
	case entryLinks:
		kept, err = r.linkSet(payload)
	case entryRunfiles:
		kept, err = r.runfilesTree(payload)
	default:
		r.log.unknown[kind]++
	}
	if err == nil && id != 0 {
		r.ids[id] = kept
	}
	return err
}

// texts reads the string fields of a message by number into to.
func (r *reader) texts(data []byte, to []ref) error {
	m := message{rest: data}
	for f, ok := m.next(); ok; f, ok = m.next() {
		if f.number < len(to) && f.wire == wireBytes {
			to[f.number] = r.keep(f.bytes)
		}
	}
	return m.err
}

func (r *reader) invocation(data []byte) error {
	if r.entry != 1 {
		return errors.New("begins another invocation: two logs are in one file")
	}
	var text [4]ref
	if err := r.texts(data, text[:3]); err != nil {
		return err
	}
	if text[2] != 0 {
		r.log.workspace = r.text(text[2])
	}
	return r.seen(r.text(text[1]))
}

// file3 reads a File of either form, in a folder or not ("" and nil).
func (r *reader) file3(data, folder []byte) (ref, error) {
	kept, _, err := r.anyFile(data, folder)
	return kept, err
}

func (r *reader) anyFile(data, folder []byte) (kept ref, tool bool, err error) {
	out := file{tag: tagFile}
	m := message{rest: data}
	var path []byte
	for f, ok := m.next(); ok; f, ok = m.next() {
		switch {
		case f.number == 1 && f.wire == wireBytes:
			path = f.bytes
		case f.number == 2 && f.wire == wireBytes:
			if out.digest, out.size, err = r.digestMessage(f.bytes); err != nil {
				return 0, false, err
			}
		case f.number == 3 && f.wire == wireVarint:
			tool = f.value != 0
		case f.number == 4 && f.wire == wireBytes && len(f.bytes) > 0:
			out.tag, out.target = tagSymlink, r.keep(f.bytes)
		}
	}
	if m.err != nil {
		return 0, false, m.err
	}
	if folder == nil {
		out.path = r.keep(path)
	} else {
		r.raw = append(append(append(r.raw[:0], folder...), '/'), path...)
		out.path = r.keep(r.raw)
	}
	return r.keepFile(out), tool, nil
}

func (r *reader) digestMessage(data []byte) (digest ref, size int64, err error) {
	m := message{rest: data}
	for f, ok := m.next(); ok; f, ok = m.next() {
		switch {
		case f.number == 1 && f.wire == wireBytes:
			digest, err = r.digest(f.bytes)
		case f.number == 2 && f.wire == wireVarint:
			size = int64(f.value)
		case f.number == 3 && f.wire == wireBytes && string(f.bytes) != r.log.hashFunction:
			err = r.seen(string(f.bytes))
		}
		if err != nil {
			return 0, 0, err
		}
	}
	if size < 0 {
		return 0, 0, errors.New("has a file of negative size")
	}
	return digest, size, m.err
}

func (r *reader) directory(data []byte) (kept, at ref, err error) {
	var path []byte
	m := message{rest: data}
	for f, ok := m.next(); ok; f, ok = m.next() {
		if f.number == 1 && f.wire == wireBytes {
			path = f.bytes
		}
	}
	var files []ref
	again := message{rest: data}
	for f, ok := again.next(); ok; f, ok = again.next() {
		if f.number == 2 && f.wire == wireBytes {
			kept, err := r.file3(f.bytes, path)
			if err != nil {
				return 0, 0, err
			}
			files = append(files, kept)
		}
	}
	at = r.keep(path)
	if len(files) == 0 {
		return r.keepFile(file{tag: tagEmptyDir, path: at}), at, m.err
	}
	return r.set(files), at, m.err
}

// find returns what an earlier entry holds.
func (r *reader) find(id uint32) (ref, error) {
	if id == 0 {
		return 0, nil
	}
	kept, found := r.ids[id]
	if !found {
		return 0, fmt.Errorf("names entry id %d, which no earlier entry has", id)
	}
	return kept, nil
}

func (r *reader) findAll(ids []uint32, to []ref) ([]ref, error) {
	for _, id := range ids {
		kept, err := r.find(id)
		if err != nil {
			return to, err
		}
		to = append(to, kept)
	}
	return to, nil
}

// inputSet reads both layouts: from 7.4 on direct entries are in field 5, before in 1 (files), 2 (folders) and
// 3 (links); field 4 names other sets.
func (r *reader) inputSet(data []byte) (ref, error) {
	m := message{rest: data}
	ids := r.nums[:0]
	var err error
	for f, ok := m.next(); ok && err == nil; f, ok = m.next() {
		if f.number <= 5 {
			ids, err = f.ids(ids)
		}
	}
	r.nums = ids
	if err == nil {
		err = m.err
	}
	if err == nil {
		r.refs, err = r.findAll(ids, r.refs[:0])
	}
	if err != nil {
		return 0, err
	}
	return r.set(r.refs), nil
}

func (r *reader) linkSet(data []byte) (ref, error) {
	var direct []link
	var sets []ref
	m := message{rest: data}
	for f, ok := m.next(); ok; f, ok = m.next() {
		switch {
		case f.number == 1 && f.wire == wireBytes:
			var l link
			pair := message{rest: f.bytes}
			for g, ok := pair.next(); ok; g, ok = pair.next() {
				switch {
				case g.number == 1 && g.wire == wireBytes:
					l.path = r.keep(g.bytes)
				case g.number == 2 && g.wire == wireVarint:
					entry, err := r.find(uint32(g.value))
					if err != nil {
						return 0, err
					}
					l.entry = entry
				}
			}
			if pair.err != nil {
				return 0, pair.err
			}
			mapping := file{tag: tagMapping, path: l.path}
			if l.entry != 0 && isFile(r.tag(l.entry)) {
				mapping.target = r.store.file(l.entry).path
			}
			l.mapping = r.keepFile(mapping)
			direct = append(direct, l)
		case f.number == 2:
			ids, err := f.ids(nil)
			if err == nil {
				sets, err = r.findAll(ids, sets)
			}
			if err != nil {
				return 0, err
			}
		}
	}
	return r.links(direct, sets), m.err
}

func (r *reader) runfilesTree(data []byte) (ref, error) {
	var t runfiles
	var mapping []byte
	var empty []ref
	m := message{rest: data}
	for f, ok := m.next(); ok; f, ok = m.next() {
		var err error
		switch {
		case f.number == 1 && f.wire == wireBytes:
			t.path = r.keep(f.bytes)
		case f.number == 2 && f.wire == wireVarint:
			t.set, err = r.find(uint32(f.value))
		case f.number == 3 && f.wire == wireVarint:
			t.links, err = r.find(uint32(f.value))
		case f.number == 4 && f.wire == wireVarint:
			t.rootLinks, err = r.find(uint32(f.value))
		case f.number == 5 && f.wire == wireBytes:
			empty = append(empty, r.keep(f.bytes))
		case f.number == 6 && f.wire == wireBytes:
			mapping = f.bytes
		case f.number == 7 && f.wire == wireVarint:
			t.legacy = f.value != 0
		}
		if err != nil {
			return 0, err
		}
	}
	if mapping != nil {
		kept, err := r.file3(mapping, nil)
		if err != nil {
			return 0, err
		}
		f := r.store.file(kept)
		f.path = r.keepText(r.text(t.path) + "/_repo_mapping")
		t.mapping = r.keepFile(f)
	}
	for _, path := range empty {
		t.empty = append(t.empty, r.keepFile(file{tag: tagFile, path: r.keepText(r.text(t.path) + "/" + r.log.workspace + "/" + r.text(path))}))
	}
	return r.keepRunfiles(t), m.err
}

func (r *reader) spawn(data []byte) error {
	var s spawn
	var args, env, platform, outputs, listed []ref
	m := message{rest: data}
	for f, ok := m.next(); ok; f, ok = m.next() {
		var err error
		switch {
		case f.wire == wireBytes:
			switch f.number {
			case 1:
				args = append(args, r.keep(f.bytes))
			case 2:
				env, err = r.pair(f.bytes, env)
			case 3:
				platform, err = r.platform(f.bytes, platform)
			case 6:
				outputs, listed, err = r.output(f.bytes, outputs, listed)
			case 7:
				s.label = r.label(r.keep(f.bytes))
			case 8:
				s.mnemonic = r.keep(f.bytes)
			case 10:
				s.status = r.keep(f.bytes)
			case 11:
				s.runner = r.keep(f.bytes)
			}
		case f.wire == wireVarint:
			switch f.number {
			case 4:
				s.inputs, err = r.find(uint32(f.value))
			case 5:
				s.tools, err = r.find(uint32(f.value))
			case 9:
				s.exit = int32(f.value)
			case 12:
				s.cacheHit = f.value != 0
			case 13:
				s.remotable = f.value != 0
			case 14:
				s.cacheable = f.value != 0
			case 15:
				s.remoteCacheable = f.value != 0
			case 17:
				s.timeout = int64(f.value)
			}
		}
		if err != nil {
			return err
		}
	}
	r.complete(s, args, env, platform, outputs, listed)
	return m.err
}

// complete puts a spawn into the log.
func (r *reader) complete(s spawn, args, env, platform, outputs, listed []ref) {
	s.args, s.env, s.platform = r.list(args), r.pairs(env), r.pairs(platform)
	slices.SortFunc(listed, func(a, b ref) int { return slices.Compare(r.items[a], r.items[b]) })
	s.listed, s.outputs = r.list(listed), r.set(outputs)
	r.log.spawns = append(r.log.spawns, s)
}

// pair appends a name and its value.
func (r *reader) pair(data []byte, to []ref) ([]ref, error) {
	var text [3]ref
	err := r.texts(data, text[:])
	return append(to, text[1], text[2]), err
}

func (r *reader) platform(data []byte, to []ref) ([]ref, error) {
	m := message{rest: data}
	for f, ok := m.next(); ok; f, ok = m.next() {
		if f.number == 1 && f.wire == wireBytes {
			var err error
			if to, err = r.pair(f.bytes, to); err != nil {
				return to, err
			}
		}
	}
	return to, m.err
}

// output reads both layouts: the entry is named in field 5, before 7.4 in 1, 2 or 3; field 4 is the path of an
// output that is missing or of the wrong kind.
func (r *reader) output(data []byte, outputs, listed []ref) ([]ref, []ref, error) {
	m := message{rest: data}
	for f, ok := m.next(); ok; f, ok = m.next() {
		switch {
		case f.number == 4 && f.wire == wireBytes:
			listed = append(listed, r.keep(f.bytes))
		case f.number <= 5 && f.wire == wireVarint:
			kept, err := r.find(uint32(f.value))
			if err != nil {
				return outputs, listed, err
			}
			if kept != 0 {
				outputs = append(outputs, kept)
				at, folder := r.folders[uint32(f.value)]
				if !folder {
					if !isFile(r.tag(kept)) {
						return outputs, listed, errors.New("names a set as its output")
					}
					at = r.store.file(kept).path
				}
				listed = append(listed, at)
			}
		}
	}
	return outputs, listed, m.err
}

// label takes the marks off that only some releases put before labels of the main repository.
func (r *reader) label(label ref) ref {
	text := r.items[label]
	cut := text
	for len(cut) > 1 && cut[0] == '@' && (cut[1] == '@' || cut[1] == '/') {
		cut = cut[1:]
	}
	if len(cut) < len(text) && cut[0] == '/' {
		return r.keep(cut)
	}
	return label
}
