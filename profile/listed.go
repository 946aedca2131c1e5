package profile

import (
	"selfsame.dev/selfsame/internal/tree"
	"selfsame.dev/selfsame/internal/tree/disk"
	"selfsame.dev/selfsame/manifest"
)

// Summary returns the structure of the profile of m as a tree (selfsame-tree.v1).
func Summary(m *manifest.Manifest) (tree.Summary, error) {
	files, err := Files(m)
	if err != nil {
		return tree.Summary{}, err
	}
	return tree.Summarize(entries(files))
}

// VerifyListed holds the listed files of a compiled profile against the profile that m gives: their
// exact set, sizes and digests. It is for build systems, which stage files as links and do not keep
// modes; before a start [Verify] decides.
func VerifyListed(list []disk.File, m *manifest.Manifest) ([]manifest.Difference, error) {
	files, err := Files(m)
	if err != nil {
		return nil, err
	}
	have, err := disk.HashFiles(list, "", disk.Options{})
	out, err := compare(files, have, err)
	return sorted(out), err
}
