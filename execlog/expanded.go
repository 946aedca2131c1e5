package execlog

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"selfsame.dev/selfsame/internal/canon"
)

// spawnExec decodes a SpawnExec, the whole entry of the binary form (Bazel, src/main/protobuf/spawn.proto).
func (r *reader) spawnExec(data []byte) error {
	var s spawn
	var args, env, platform, inputs, tools, outputs, listed []ref
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
			case 4:
				var kept ref
				var tool bool
				if kept, tool, err = r.anyFile(f.bytes, nil); tool {
					tools = append(tools, kept)
				}
				inputs = append(inputs, kept)
			case 5:
				listed = append(listed, r.keep(f.bytes))
			case 10:
				s.mnemonic = r.keep(f.bytes)
			case 11:
				var kept ref
				kept, err = r.file3(f.bytes, nil)
				outputs = append(outputs, kept)
			case 12:
				s.runner = r.keep(f.bytes)
			case 14:
				s.status = r.keep(f.bytes)
			case 18:
				s.label = r.label(r.keep(f.bytes))
			}
		case f.wire == wireVarint:
			switch f.number {
			case 6:
				s.remotable = f.value != 0
			case 7:
				s.cacheable = f.value != 0
			case 8:
				s.timeout = int64(f.value)
			case 13:
				s.cacheHit = f.value != 0
			case 15:
				s.exit = int32(f.value)
			case 16:
				s.remoteCacheable = f.value != 0
			}
		}
		if err != nil {
			return err
		}
	}
	if m.err != nil {
		return m.err
	}
	s.inputs, s.tools = r.set(inputs), r.set(tools)
	r.complete(s, args, env, platform, outputs, listed)
	return nil
}

// json reads JSON objects that follow each other, each a SpawnExec in the JSON form of Protocol Buffers.
func (r *reader) objects(in *bufio.Reader) error {
	bounded := &entryReader{r: in, limit: int64(r.limits.Entry)}
	d := &jsonReader{reader: r, dec: jsontext.NewDecoder(bounded)}
	for {
		r.entry++
		r.at = d.dec.InputOffset()
		bounded.begin = r.at
		if d.dec.PeekKind() == 0 {
			if _, err := d.dec.ReadToken(); err == io.EOF {
				return nil
			} else if err != nil {
				return d.problem(err)
			}
		}
		if err := d.spawnExec(); err != nil {
			return d.problem(err)
		}
		if r.full() {
			return r.tooMuch()
		}
	}
}

// entryReader fails where an entry does not end in time, for a decoder keeps what it has begun.
type entryReader struct {
	r     io.Reader
	at    int64
	begin int64 // of the entry
	limit int64
}

var errLongEntry = errors.New("too long an entry")

func (e *entryReader) Read(p []byte) (int, error) {
	n, err := e.r.Read(p[:min(len(p), 1<<16)])
	if e.at += int64(n); e.at-e.begin > e.limit+1<<16 {
		return 0, errLongEntry
	}
	return n, err
}

type jsonReader struct {
	*reader
	dec     *jsontext.Decoder
	scratch []byte
}

// problem says what is wrong with the JSON, and where.
func (d *jsonReader) problem(err error) error {
	var syntactic *jsontext.SyntacticError
	var input *canon.InputError
	switch {
	case errors.As(err, &input):
		return err
	case errors.Is(err, errLongEntry):
		return d.refuseAt(d.at, fmt.Sprintf("is longer than the limit of %d bytes", d.limits.Entry), "give the file as Bazel wrote it")
	case errors.Is(err, io.ErrUnexpectedEOF):
		d.at = d.dec.InputOffset()
		return d.damage(io.ErrUnexpectedEOF)
	case errors.As(err, &syntactic):
		return d.refuseAt(syntactic.ByteOffset, "is malformed: "+syntactic.Err.Error(), "give the file as Bazel wrote it")
	case errors.Is(err, errShape) || errors.Is(err, errDigest):
		return d.refuseAt(d.dec.InputOffset(), err.Error(), "give a file that --execution_log_json_file wrote")
	case errors.Is(err, errTooLong), d.log.compressed:
		return d.damage(err)
	}
	return d.refuseAt(d.dec.InputOffset(), err.Error(), "give the file as Bazel wrote it")
}

var errShape = errors.New("is no entry of an execution log of Bazel")

// object reads an object, and calls member with each name; member reads the value or returns false.
func (d *jsonReader) object(member func(name string) (bool, error)) error {
	if tok, err := d.dec.ReadToken(); err != nil {
		return err
	} else if tok.Kind() != '{' {
		return errShape
	}
	for d.dec.PeekKind() != '}' {
		name, err := d.dec.ReadValue()
		if err != nil {
			return err
		}
		// Names of the format have no escapes; one that has is unknown.
		known, err := member(string(name[1 : len(name)-1]))
		if err == nil && !known {
			err = d.dec.SkipValue()
		}
		if err != nil {
			return err
		}
	}
	_, err := d.dec.ReadToken()
	return err
}

// array reads an array; element reads one value.
func (d *jsonReader) array(element func() error) error {
	if tok, err := d.dec.ReadToken(); err != nil {
		return err
	} else if tok.Kind() != '[' {
		return errShape
	}
	for d.dec.PeekKind() != ']' {
		if err := element(); err != nil {
			return err
		}
	}
	_, err := d.dec.ReadToken()
	return err
}

// bytes reads a string, valid until the next one.
func (d *jsonReader) bytes() ([]byte, error) {
	value, err := d.dec.ReadValue()
	if err != nil {
		return nil, err
	}
	if value.Kind() != '"' {
		return nil, errShape
	}
	d.scratch, err = jsontext.AppendUnquote(d.scratch[:0], value)
	return d.scratch, err
}

func (d *jsonReader) text(to *ref) error {
	text, err := d.bytes()
	*to = d.keep(text)
	return err
}

func (d *jsonReader) bool(to *bool) error {
	tok, err := d.dec.ReadToken()
	if err != nil {
		return err
	}
	if kind := tok.Kind(); kind != 't' && kind != 'f' {
		return errShape
	}
	*to = tok.Bool()
	return nil
}

// int reads a number, which the JSON form of 64 bits writes as a string.
func (d *jsonReader) int(to *int64) error {
	value, err := d.dec.ReadValue()
	if err != nil {
		return err
	}
	text := []byte(value)
	if value.Kind() == '"' {
		text = text[1 : len(text)-1]
	}
	if *to, err = strconv.ParseInt(string(text), 10, 64); err != nil {
		return errShape
	}
	return nil
}

func (d *jsonReader) texts(to *[]ref) error {
	return d.array(func() error {
		var text ref
		err := d.text(&text)
		*to = append(*to, text)
		return err
	})
}

func (d *jsonReader) namedValues(to *[]ref) error {
	return d.array(func() error {
		var name, value ref
		err := d.object(func(member string) (bool, error) {
			switch member {
			case "name":
				return true, d.text(&name)
			case "value":
				return true, d.text(&value)
			}
			return false, nil
		})
		*to = append(*to, name, value)
		return err
	})
}

func (d *jsonReader) fileObject(to *[]ref, tools *[]ref) error {
	out := file{tag: tagFile}
	tool := false
	err := d.object(func(member string) (bool, error) {
		switch member {
		case "path":
			return true, d.text(&out.path)
		case "isTool":
			return true, d.bool(&tool)
		case "symlinkTargetPath":
			err := d.text(&out.target)
			if out.target != 0 {
				out.tag = tagSymlink
			}
			return true, err
		case "digest":
			if d.dec.PeekKind() == 'n' {
				return false, nil
			}
			return true, d.digestObject(&out)
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	kept := d.keepFile(out)
	*to = append(*to, kept)
	if tool && tools != nil {
		*tools = append(*tools, kept)
	}
	return nil
}

func (d *jsonReader) digestObject(out *file) error {
	return d.object(func(member string) (bool, error) {
		switch member {
		case "hash":
			text, err := d.bytes()
			if err == nil {
				out.digest, err = d.digest(text)
			}
			return true, err
		case "sizeBytes":
			err := d.int(&out.size)
			if err == nil && out.size < 0 {
				err = errShape
			}
			return true, err
		case "hashFunctionName":
			text, err := d.bytes()
			if err == nil && string(text) != d.log.hashFunction {
				err = d.seen(string(text))
			}
			return true, err
		}
		return false, nil
	})
}

func (d *jsonReader) spawnExec() error {
	var s spawn
	var args, env, platform, inputs, tools, outputs, listed []ref
	names := 0
	err := d.object(func(member string) (bool, error) {
		names++
		switch member {
		case "commandArgs":
			return true, d.texts(&args)
		case "environmentVariables":
			return true, d.namedValues(&env)
		case "platform":
			return true, d.object(func(member string) (bool, error) {
				if member == "properties" {
					return true, d.namedValues(&platform)
				}
				return false, nil
			})
		case "inputs":
			return true, d.array(func() error { return d.fileObject(&inputs, &tools) })
		case "listedOutputs":
			return true, d.texts(&listed)
		case "actualOutputs":
			return true, d.array(func() error { return d.fileObject(&outputs, nil) })
		case "mnemonic":
			return true, d.text(&s.mnemonic)
		case "targetLabel":
			err := d.text(&s.label)
			s.label = d.label(s.label)
			return true, err
		case "runner":
			return true, d.text(&s.runner)
		case "status":
			return true, d.text(&s.status)
		case "exitCode":
			var exit int64
			err := d.int(&exit)
			s.exit = int32(exit)
			return true, err
		case "timeoutMillis":
			return true, d.int(&s.timeout)
		case "remotable":
			return true, d.bool(&s.remotable)
		case "cacheable":
			return true, d.bool(&s.cacheable)
		case "remoteCacheable":
			return true, d.bool(&s.remoteCacheable)
		case "cacheHit":
			return true, d.bool(&s.cacheHit)
		}
		names--
		return false, nil
	})
	if err != nil {
		return err
	}
	if names < 3 || len(args) == 0 && len(listed) == 0 && s.mnemonic == 0 {
		return errShape
	}
	s.inputs, s.tools = d.set(inputs), d.set(tools)
	d.complete(s, args, env, platform, outputs, listed)
	return nil
}
