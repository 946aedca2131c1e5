package compare

import (
	"path"
	"slices"
	"strings"

	"selfsame.dev/selfsame/internal/tree"
	"selfsame.dev/selfsame/manifest"
)

// Class says what a difference means for the identity.
type Class string

const (
	Identity           Class = "identity"
	Generated          Class = "generated_view"
	Unclassified       Class = "unclassified" // no surface claims the file, so nothing says that it is harmless
	CredentialPresence Class = "credential_presence"
	Operational        Class = "operational"
	Continuity         Class = "continuity"
	Provenance         Class = "provenance"
)

// Classes are all of them, in the order of their weight.
var Classes = []Class{Identity, Generated, Unclassified, CredentialPresence, Operational, Continuity, Provenance}

// Identity reports whether a difference of the class puts the identity in doubt.
func (c Class) Identity() bool { return c == Identity || c == Generated || c == Unclassified }

// Surfaces of outputs beside those of the inventory.
const (
	Credentials   manifest.Surface = "credentials"
	GitProvenance manifest.Surface = "git-provenance"
	Observation   manifest.Surface = "operational-observation"
	Binding       manifest.Surface = "identity-binding" // the digests by which provenance names its manifest
	DigestFile    manifest.Surface = "digest-file"
	Receipt       manifest.Surface = "receipt"
	Output        manifest.Surface = "output"
)

type owner struct {
	class         Class
	authority     manifest.Authority
	owner, action string
}

// owners says who decides about a surface and what to do about a difference. Class and authority of those
// in the inventory come from their declaration.
var owners = map[manifest.Surface]owner{
	manifest.RuntimeConfig:    {owner: "config.yaml of the profile template", action: "make config.yaml say the same on both sides, or accept the change by generating the manifest anew"},
	manifest.Permissions:      {owner: "config.yaml of the profile template", action: "review the permission first; then make config.yaml the same, or generate the manifest anew"},
	manifest.HermesCode:       {owner: "the source tree of the runtime", action: "check out the same revision of the runtime, or generate the manifest anew from the one that is meant"},
	manifest.DeploymentCode:   {owner: "the source tree of the deployment", action: "check out the same revision of the deployment, or generate the manifest anew from the one that is meant"},
	manifest.RuntimeABI:       {owner: "the code roots' installed interpreter, packages and programs", action: "install the same versions from one lock file, then generate the manifest anew"},
	manifest.Skills:           {owner: "skills/ of the profile template", action: "take the files of the side that is meant, then generate the other manifest anew"},
	manifest.Plugins:          {owner: "plugins/ of the profile template", action: "take the files of the side that is meant, then generate the other manifest anew"},
	manifest.DatabaseTools:    {owner: "database-tools/ of the profile template", action: "review the command first; then take the files of the side that is meant and generate the other manifest anew"},
	manifest.Constitution:     {owner: "the committed constitution", action: "change it by review only: restore the committed file, or commit the change and generate the manifests anew"},
	manifest.DatabaseSnapshot: {owner: "the exporter of the database", action: "export fingerprint and rows again from one transaction of one database"},
	manifest.IdentityRows:     {owner: "the exporter of the database, and the files that its rows cite", action: "export rows and fingerprint again from one transaction, with the evidence files of that revision"},
	manifest.CompiledViews:    {owner: "the generator; never edited by hand", action: "if inputs differ, settle those first; if only this differs, use one version of selfsame on both sides"},
	manifest.ProfileTemplate:  {Operational, manifest.ContinuityOnly, "the operator of each machine", "none for the identity: the name is neither read nor copied; remove it where it is not wanted"},
	manifest.CompiledProfile:  {Generated, manifest.GeneratedView, "selfsame profile compile; never edited by hand", "settle the inputs first, then compile the profile anew into an empty folder"},
	Credentials:               {owner: "the operator of each machine", action: "none for the identity; provide the credential where it is absent and needed"},
	GitProvenance:             {owner: "the commit that each side was built from", action: "none for the identity: equal inputs of two commits are one agent"},
	"wal-position":            {owner: "the database server", action: "none: it moves without a change of content"},
	"hosted-weights":          {owner: "the provider of the model", action: "none here: no local digest of the weights exists"},
	"sessions":                {owner: "the running agent", action: "none for the identity: it is never read and never evidence"},
	"state":                   {owner: "the running agent", action: "none for the identity: it is never read and never evidence"},
	"memory":                  {owner: "the running agent", action: "none for the identity; in a compiled profile it does not belong: compile anew"},
	"project-context":         {owner: "the running agent", action: "none for the identity; in a compiled profile it does not belong: compile anew"},
	"pairing":                 {owner: "the operator of each machine", action: "none for the identity; in a compiled profile it does not belong: compile anew"},
	Observation:               {Operational, manifest.Capability, "the local key of each machine", "under one key id: a credential or the layout of config.yaml changed; under two they say nothing of each other"},
	Binding:                   {Identity, manifest.ProvenanceOnly, "the manifest that the provenance stands beside", "compare the two manifests"},
	DigestFile:                {Generated, manifest.GeneratedView, "the action that wrote it", "settle the file beside it; if that one is equal, write both anew"},
	Receipt:                   {Operational, manifest.ProvenanceOnly, "the run that wrote it", "none for the identity; read both: they say what each run saw"},
	Output:                    {Unclassified, manifest.NeverClaimed, "nobody that selfsame knows", "find out what writes the file; leave it out of the folder if it is no output"},
}

func ownerOf(surface manifest.Surface) owner {
	o := owners[surface]
	for _, d := range inventory {
		if d.Surface == surface {
			o.class, o.authority = classOf(d), d.Authority
		}
	}
	return o
}

var inventory = manifest.Inventory()

func rank(surface manifest.Surface) int {
	i := slices.IndexFunc(inventory, func(d manifest.Declaration) bool { return d.Surface == surface })
	if i < 0 {
		i = len(inventory)
	}
	return i
}

func classOf(d manifest.Declaration) Class {
	switch {
	case d.Pinned && d.Authority == manifest.GeneratedView:
		return Generated
	case d.Pinned:
		return Identity
	}
	switch d.Authority {
	case manifest.Capability:
		return CredentialPresence
	case manifest.ContinuityOnly:
		return Continuity
	case manifest.ProvenanceOnly:
		return Provenance
	}
	return Operational
}

// profileManifest is the file that makes a folder a compiled profile (format profile-manifest.v1).
const profileManifest = "profile-manifest.json"

// places knows which folders are compiled profiles, and which files there are.
type places struct {
	roots map[string]bool
	files map[string]bool
}

func profiles(lists ...[]tree.Entry) places {
	p := places{map[string]bool{}, map[string]bool{}}
	for _, list := range lists {
		for _, e := range list {
			p.files[e.Path] = true
			if path.Base(e.Path) == profileManifest {
				p.roots[path.Dir(e.Path)] = true
			}
		}
	}
	return p
}

// surface says what a file of a folder of outputs belongs to.
func (p places) surface(name string) manifest.Surface {
	for root := path.Dir(name); ; root = path.Dir(root) {
		if p.roots[root] {
			return inProfile(strings.TrimPrefix(name, root+"/"))
		}
		if root == "." {
			break
		}
	}
	base, isDigest := strings.CutSuffix(name, ".sha256")
	switch {
	case isDigest && (p.files[base] || p.roots[strings.TrimSuffix(base, ".tree")]):
		return DigestFile
	case strings.HasSuffix(name, "receipt.json"), strings.HasSuffix(name, ".verified.json"):
		return Receipt
	}
	if surface := ofName(name); surface != "" {
		return surface
	}
	return Output
}

func inProfile(name string) manifest.Surface {
	if surface, ok := manifest.FolderSurface(name); ok {
		return surface
	}
	switch name {
	case profileManifest:
		return manifest.CompiledProfile
	case manifest.SoulFile, manifest.IdentityFile:
		return manifest.CompiledViews
	case manifest.ConfigFile:
		return manifest.RuntimeConfig
	}
	if surface := ofName(name); surface != "" {
		return surface
	}
	return Output
}

// ofName is the surface of what a profile holds beside its identity, by the top level name.
func ofName(name string) manifest.Surface {
	top, _, _ := strings.Cut(name, "/")
	switch manifest.ClassOf(top) {
	case manifest.ClassCredential:
		return Credentials
	case manifest.ClassState:
		if strings.HasSuffix(top, "sessions") {
			return "sessions"
		}
		return "state"
	case manifest.ClassMemory:
		return "memory"
	case manifest.ClassPairing:
		return "pairing"
	case manifest.ClassCache, manifest.ClassInstalled, manifest.ClassLegacy:
		return manifest.ProfileTemplate
	}
	return ""
}

func isJSON(name string) bool { return path.Ext(name) == ".json" }
