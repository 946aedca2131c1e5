package rpi

import "iter"

// Kind is the JSON type of a [Value].
type Kind uint8

// The kinds. The zero Value is null.
const (
	Null Kind = iota
	Bool
	Number
	Text
	List
	Object
)

func (k Kind) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "a list", "an object"}[k]
}

// Value is one decoded JSON value. It cannot be changed once made, so rounds, findings
// and reports may share parts of their input.
type Value struct {
	kind Kind
	// flag: the boolean itself, or for numbers that the literal was an integer (Python's int).
	flag bool
	// text: the string, or the number in RFC 8785 form.
	text string
	kids []Member
}

// Member is one name and value of an object; elements of lists have no name.
type Member struct {
	Name  string
	Value Value
}

// String returns a JSON string.
func String(s string) Value { return Value{kind: Text, text: s} }

// Boolean returns true or false.
func Boolean(b bool) Value { return Value{kind: Bool, flag: b} }

// Integer returns a JSON number.
func Integer(n int) Value { return Value{kind: Number, flag: true, text: itoa(n)} }

// ListOf returns a list.
func ListOf(items ...Value) Value {
	kids := make([]Member, len(items))
	for i, item := range items {
		kids[i].Value = item
	}
	return Value{kind: List, kids: kids}
}

// Strings returns a list of strings.
func Strings(items []string) Value {
	kids := make([]Member, len(items))
	for i, item := range items {
		kids[i].Value = String(item)
	}
	return Value{kind: List, kids: kids}
}

// ObjectOf returns an object with the given members, whose names must be distinct.
func ObjectOf(members ...Member) Value {
	return Value{kind: Object, kids: append([]Member(nil), members...)}
}

// Kind returns the JSON type.
func (v Value) Kind() Kind { return v.kind }

// IsNull reports whether v is null; a missing member reads as null as well.
func (v Value) IsNull() bool { return v.kind == Null }

// Text returns the string that v is.
func (v Value) Text() (string, bool) { return v.text, v.kind == Text }

// Len returns how many elements or members v has.
func (v Value) Len() int { return len(v.kids) }

// Items returns the elements of a list in order, or the values of an object.
func (v Value) Items() iter.Seq2[int, Value] {
	return func(yield func(int, Value) bool) {
		for i := range v.kids {
			if !yield(i, v.kids[i].Value) {
				return
			}
		}
	}
}

// Members returns the names and values of an object in the order of the document.
func (v Value) Members() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		if v.kind != Object {
			return
		}
		for i := range v.kids {
			if !yield(v.kids[i].Name, v.kids[i].Value) {
				return
			}
		}
	}
}

// Get returns the member with this name; ok is false when v is no object or has none.
func (v Value) Get(name string) (member Value, ok bool) {
	if p := v.member(name); p != nil {
		return *p, true
	}
	return Value{}, false
}

func (v *Value) member(name string) *Value {
	if v.kind != Object {
		return nil
	}
	for i := range v.kids {
		if v.kids[i].Name == name {
			return &v.kids[i].Value
		}
	}
	return nil
}

// With returns an object with the members of v, those of over laid on top: a name that
// both have keeps its place and takes the later value.
func (v Value) With(over Value) Value {
	kids := make([]Member, len(v.kids), len(v.kids)+len(over.kids))
	copy(kids, v.kids)
	at := newNames(len(kids))
	for _, kid := range kids {
		at.add(kid.Name)
	}
	for _, kid := range over.kids {
		if i := at.find(kid.Name); i >= 0 {
			kids[i] = kid
			continue
		}
		at.add(kid.Name)
		kids = append(kids, kid)
	}
	return Value{kind: Object, kids: kids}
}
