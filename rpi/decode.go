package rpi

import (
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"selfsame.dev/selfsame/internal/canon"
)

// Decode reads one I-JSON document. It refuses, as a [*canon.InputError], exactly what
// [canon.Check] refuses.
func Decode(raw []byte) (Value, error) {
	if err := canon.Check(raw); err != nil {
		return Value{}, err
	}
	stack := stacks.Get().(*[]Member)
	p := parser{text: string(raw), stack: (*stack)[:0]}
	value := p.value()
	*stack = p.stack
	stacks.Put(stack)
	return value, nil
}

var stacks = sync.Pool{New: func() any { return new([]Member) }}

// parser reads a document that canon.Check has accepted; it checks nothing again.
// Strings without escapes share the memory of the document.
type parser struct {
	text string
	at   int
	// stack holds the children of the containers being read, so that each container
	// is allocated once at its size.
	stack []Member
}

func (p *parser) peek() byte {
	for {
		switch c := p.text[p.at]; c {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return c
		}
	}
}

func (p *parser) value() Value {
	switch p.peek() {
	case '{':
		return p.container(Object, '}')
	case '[':
		return p.container(List, ']')
	case '"':
		return Value{kind: Text, text: p.string()}
	case 'n':
		p.at += len("null")
		return Value{}
	case 't':
		p.at += len("true")
		return Boolean(true)
	case 'f':
		p.at += len("false")
		return Boolean(false)
	}
	return p.number()
}

func (p *parser) container(kind Kind, end byte) Value {
	p.at++
	base := len(p.stack)
	for p.peek() != end {
		if p.text[p.at] == ',' {
			p.at++
			p.peek()
		}
		var member Member
		if kind == Object {
			member.Name = p.string()
			p.peek() // the colon
			p.at++
		}
		member.Value = p.value()
		p.stack = append(p.stack, member)
	}
	p.at++
	kids := append([]Member(nil), p.stack[base:]...)
	clear(p.stack[base:]) // or the pool would hold the document
	p.stack = p.stack[:base]
	return Value{kind: kind, kids: kids}
}

func (p *parser) string() string {
	p.at++
	start := p.at
	end := start + strings.IndexByte(p.text[start:], '"')
	if strings.IndexByte(p.text[start:end], '\\') < 0 {
		p.at = end + 1
		return p.text[start:end]
	}
	end = start
	for p.text[end] != '"' {
		if p.text[end] == '\\' {
			end++
		}
		end++
	}
	p.at = end + 1
	unquoted, _ := jsontext.AppendUnquote(nil, p.text[start-1:end+1]) // canon.Check read it before
	return string(unquoted)
}

func (p *parser) number() Value {
	start := p.at
	for p.at < len(p.text) && strings.IndexByte("+-.0123456789eE", p.text[p.at]) >= 0 {
		p.at++
	}
	literal := p.text[start:p.at]
	integer := !strings.ContainsAny(literal, ".eE")
	if integer && len(literal) <= 15 && literal != "-0" {
		return Value{kind: Number, flag: true, text: literal}
	}
	form := jsontext.Value(literal)
	_ = form.Canonicalize() // cannot fail: canon.Check read it before
	return Value{kind: Number, flag: integer, text: string(form)}
}

func itoa(n int) string { return strconv.Itoa(n) }

// float returns the number that v is; only for numbers.
func (v Value) float() float64 {
	f, _ := strconv.ParseFloat(v.text, 64)
	return f
}
