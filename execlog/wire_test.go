package execlog

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// A writer of logs for tests, apart from the reader: messages as the format has them.

func num(field int, v uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(field)<<3), v)
}

func str(field int, text string) []byte {
	b := binary.AppendUvarint(nil, uint64(field)<<3|2)
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

func msg(field int, parts ...[]byte) []byte { return str(field, string(cat(parts...))) }

func cat(parts ...[]byte) []byte {
	var out []byte
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

func packed(field int, ids ...uint64) []byte {
	var b []byte
	for _, id := range ids {
		b = binary.AppendUvarint(b, id)
	}
	return str(field, string(b))
}

// maker writes a compact log.
type maker struct {
	out  []byte
	next uint64
	old  bool // the layout before 7.4
}

func newMaker() *maker {
	m := &maker{}
	m.entry(msg(entryInvocation, str(1, "SHA-256"), str(2, "_main")))
	return m
}

func (m *maker) entry(parts ...[]byte) {
	body := cat(parts...)
	m.out = append(binary.AppendUvarint(m.out, uint64(len(body))), body...)
}

func (m *maker) put(kind int, parts ...[]byte) uint64 {
	m.next++
	m.entry(num(1, m.next), msg(kind, parts...))
	return m.next
}

// sum is a digest message of what is not there to be hashed: any text stands for it.
func sum(content string) []byte {
	if content == "" {
		return nil
	}
	digest := hex.EncodeToString([]byte(content))
	digest = (digest + strings.Repeat("0", 64))[:64]
	return msg(2, str(1, digest), num(2, uint64(len(content))))
}

func (m *maker) file(path, content string) uint64 {
	return m.put(entryFile, str(1, path), sum(content))
}

func (m *maker) folder(path string, files ...string) uint64 {
	parts := [][]byte{str(1, path)}
	for i := 0; i+1 < len(files); i += 2 {
		parts = append(parts, msg(2, str(1, files[i]), sum(files[i+1])))
	}
	return m.put(entryDirectory, parts...)
}

func (m *maker) link(path, target string) uint64 {
	return m.put(entrySymlink, str(1, path), str(2, target))
}

func (m *maker) set(direct []uint64, sets ...uint64) uint64 {
	if m.old {
		return m.put(entrySet, packed(1, direct...), packed(4, sets...))
	}
	return m.put(entrySet, packed(5, direct...), packed(4, sets...))
}

// act is an action of a log that a test makes.
type act struct {
	label, mnemonic string
	args            []string
	env, platform   []string // names and values
	inputs, tools   uint64   // sets
	out, made       string   // path and content of the output; none where made is "-"
	outputs         []uint64 // more of them
	exit            uint64
	status, runner  string
	remotable       bool
}

func (m *maker) act(a act) {
	if a.mnemonic == "" {
		a.mnemonic = "Step"
	}
	if a.runner == "" {
		a.runner = "linux-sandbox"
	}
	parts := [][]byte{str(7, a.label), str(8, a.mnemonic), str(11, a.runner), num(4, a.inputs), num(5, a.tools), num(9, a.exit), str(10, a.status)}
	for _, arg := range a.args {
		parts = append(parts, str(1, arg))
	}
	for i := 0; i+1 < len(a.env); i += 2 {
		parts = append(parts, msg(2, str(1, a.env[i]), str(2, a.env[i+1])))
	}
	var properties [][]byte
	for i := 0; i+1 < len(a.platform); i += 2 {
		properties = append(properties, msg(1, str(1, a.platform[i]), str(2, a.platform[i+1])))
	}
	parts = append(parts, msg(3, properties...))
	if strings.HasSuffix(a.runner, "cache hit") {
		parts = append(parts, num(12, 1))
	}
	if a.remotable {
		parts = append(parts, num(13, 1))
	}
	switch {
	case a.made == "-":
		parts = append(parts, msg(6, str(4, a.out)))
	case a.out != "":
		a.outputs = append(a.outputs, m.file(a.out, a.made))
	}
	field := 5
	if m.old {
		field = 1
	}
	for _, id := range a.outputs {
		parts = append(parts, msg(6, num(field, id)))
	}
	m.entry(msg(entrySpawn, parts...))
}

func squeeze(data []byte) []byte {
	w, err := zstd.NewWriter(nil)
	if err != nil {
		panic(err)
	}
	return w.EncodeAll(data, nil)
}

// bin is a path of an output.
func bin(name string) string { return "bazel-out/k8-fastbuild/bin/" + name }

func text(n int, what string) string { return fmt.Sprintf("%s%06d", what, n) }
