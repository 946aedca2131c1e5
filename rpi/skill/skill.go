// Package skill holds the texts that an agent loads to run RPI. A contract test holds them
// against the program.
package skill

import "embed"

// Files are SKILL.md and its references.
//
//go:embed SKILL.md references/*.md
var Files embed.FS
