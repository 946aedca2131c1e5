package rpi

// names is an ordered set of strings. Small sets are scanned, larger ones indexed, so
// that the law is quick on ordinary rounds and linear on huge ones.
type names struct {
	list  []string
	index map[string]int
}

const scanned = 12

func newNames(capacity int) names { return names{list: make([]string, 0, capacity)} }

// find returns the place of s, or -1.
func (n *names) find(s string) int {
	if n.index != nil {
		if i, ok := n.index[s]; ok {
			return i
		}
		return -1
	}
	for i, have := range n.list {
		if have == s {
			return i
		}
	}
	return -1
}

func (n *names) has(s string) bool { return n.find(s) >= 0 }

// add returns the place of s and whether it is new.
func (n *names) add(s string) (int, bool) {
	if i := n.find(s); i >= 0 {
		return i, false
	}
	i := len(n.list)
	n.list = append(n.list, s)
	switch {
	case n.index != nil:
		n.index[s] = i
	case len(n.list) > scanned:
		n.index = make(map[string]int, 4*scanned)
		for at, have := range n.list {
			n.index[have] = at
		}
	}
	return i, true
}
