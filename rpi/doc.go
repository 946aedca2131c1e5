// Package rpi is the convergence law of a repair and one traversal of plan, implement
// and validate, as pure functions over decoded JSON (source: seeds/rpi-core.txt, the
// reference program; law R1).
//
// It follows the reference in its corners too. White space is what Python strips;
// a digest may end with one line feed; true equals 1 when two evidence bindings are
// compared; null lists of a binding are harmless until the law has to read them;
// what callers hand in for a report (intent_ref and its like) is carried as it is.
//
// Where a JSON document cannot be what a Python value is, it differs, and nowhere else:
//   - Documents are I-JSON ([canon.Check]): duplicate names, NaN, lone surrogates, integers
//     that a double does not keep and deep nesting are refused before the law sees them.
//   - Numbers are doubles: two huge numbers written in different ways are equal when their doubles are.
//   - Output is RFC 8785: 1.0 is written 1, members are sorted.
//   - An exception of the reference other than ValueError (an unhashable status, a null list
//     the law iterates) is a [*Refusal] like any other.
package rpi
