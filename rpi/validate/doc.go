// Package validate is what the judge owns: intents stored under the digest of their raw bytes, subject
// manifests, contained checks, verdicts, and the signed chain of rounds that replays offline
// (source: seeds/rpi-core.txt, "Fresh judgment"; laws R2 and R3). The law itself is package rpi.
package validate
