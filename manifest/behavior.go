package manifest

import (
	"reflect"
	"slices"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/schemas"
)

// BehaviorFormat is the format of a behavior manifest.
const BehaviorFormat = "behavior-manifest.v1"

// Behavior is the format behavior-manifest.v1: what the profile template and the code roots
// bring into an answer. Inputs is identity; Operational is not.
type Behavior struct {
	Format      string         `json:"format"`
	Inputs      BehaviorInputs `json:"inputs"`
	InputsSum   canon.Digest   `json:"inputs_sha256"`
	Operational Operational    `json:"operational"`
}

// BehaviorInputs is the part of the identity that is observed in the template and the code roots.
type BehaviorInputs struct {
	RuntimeConfig  Settings         `json:"runtime_config"`
	Permissions    PermissionInputs `json:"permissions"`
	HermesCode     CodeTree         `json:"hermes_code"`
	DeploymentCode CodeTree         `json:"deployment_code"`
	RuntimeABI     ABI              `json:"runtime_abi"`
	Skills         Tree             `json:"skills"`
	Plugins        Tree             `json:"plugins"`
	DatabaseTools  Tree             `json:"database_tools"`
}

// Observe makes a behavior manifest. Refused input is an error that says what to do.
func Observe(s Sources) (*Behavior, error) {
	o := observe(s)
	if err := o.first(); err != nil {
		return nil, err
	}
	b := &Behavior{Format: BehaviorFormat, Inputs: o.inputs}
	var err error
	if b.InputsSum, err = canon.DigestOf(b.Inputs); err != nil {
		return nil, err
	}
	b.Operational, err = operational(s, o.report)
	return b, err
}

// DecodeBehavior reads a behavior manifest and recomputes everything it states about itself.
func DecodeBehavior(file string, data []byte) (*Behavior, error) {
	var b Behavior
	if err := schemas.DecodeCanonical(file, BehaviorFormat, data, &b); err != nil {
		return nil, err
	}
	if err := b.check(); err != nil {
		return nil, canon.InFile(file, err)
	}
	return &b, nil
}

// Encode returns the bytes of the file: RFC 8785.
func (b *Behavior) Encode() ([]byte, error) { return canon.Marshal(b) }

func (b *Behavior) check() error {
	if err := b.Inputs.check(); err != nil {
		return err
	}
	return restated("", "/inputs_sha256", b.InputsSum, b.Inputs)
}

// problem is what one surface was refused for.
type problem struct {
	surface Surface
	err     error
}

// observation is what was found, surface by surface, the refused ones included.
type observation struct {
	inputs   BehaviorInputs
	report   Report
	problems []problem
}

func (o *observation) refuse(surface Surface, err error) bool {
	if err != nil {
		o.problems = append(o.problems, problem{surface, err})
	}
	return err != nil
}

func (o *observation) first() error {
	if len(o.problems) == 0 {
		return nil
	}
	return canon.InFile(string(o.problems[0].surface), o.problems[0].err)
}

func observe(s Sources) *observation {
	o := &observation{}
	in := &o.inputs
	if !o.refuse(ProfileTemplate, s.Template.Problem) {
		o.refuse(ProfileTemplate, checkNames(s.Template.Names))
	}
	var err error
	for _, t := range []struct {
		surface Surface
		root    Root
		to      *Tree
	}{{Skills, s.Template.Skills, &in.Skills}, {Plugins, s.Template.Plugins, &in.Plugins}, {DatabaseTools, s.Template.DatabaseTools, &in.DatabaseTools}} {
		if *t.to, err = pinTree(t.surface, t.root); !o.refuse(t.surface, err) {
			o.refuse(t.surface, scan(t.surface, t.root))
		}
	}
	if s.Template.Problem == nil {
		var permissions Settings
		in.RuntimeConfig, permissions, o.report, err = readConfig(s.Template.Config)
		if !o.refuse(configSurface(err), err) {
			in.Permissions, err = permit(permissions, in.DatabaseTools.Files)
			o.refuse(Permissions, canon.InFile(ConfigFile, err))
		}
	}
	in.RuntimeABI = ABI{Interpreters: []Interpreter{}, Programs: []Program{}}
	readable := true
	for _, t := range []struct {
		surface Surface
		root    Root
		to      *CodeTree
	}{{HermesCode, s.Hermes, &in.HermesCode}, {DeploymentCode, s.Deployment, &in.DeploymentCode}} {
		if *t.to, err = codeTree(t.surface, t.root); o.refuse(t.surface, err) ||
			o.refuse(RuntimeABI, canon.InFile(string(t.surface), in.RuntimeABI.readABI(t.surface, t.root))) {
			readable = false
		}
	}
	if readable {
		o.refuse(RuntimeABI, in.RuntimeABI.check())
	}
	return o
}

// check recomputes everything that can be recomputed from the document itself (law I8).
func (in BehaviorInputs) check() error {
	for _, t := range []struct {
		surface Surface
		tree    Tree
		folder  string
	}{{Skills, in.Skills, SkillsFolder}, {Plugins, in.Plugins, PluginsFolder}, {DatabaseTools, in.DatabaseTools, DatabaseToolsDir}} {
		if err := t.tree.check(t.surface); err != nil {
			return err
		}
		if err := t.tree.below(t.surface, t.folder); err != nil {
			return err
		}
	}
	for _, t := range []struct {
		surface Surface
		code    CodeTree
	}{{HermesCode, in.HermesCode}, {DeploymentCode, in.DeploymentCode}} {
		if err := t.code.Tree.check(t.surface); err != nil {
			return err
		}
		selector, err := t.code.Selection.Compile()
		if err != nil {
			return canon.InFile(string(t.surface), err)
		}
		if !reflect.DeepEqual(selector.Selection(), t.code.Selection) {
			return &canon.InputError{File: string(t.surface), Key: "selection", Problem: "is not in normal form", Fix: "generate the manifest anew"}
		}
		for _, e := range t.code.Tree.Files {
			if !selector.Selects(e.Path) {
				return &canon.InputError{File: string(t.surface), Key: e.Path, Problem: "is not selected by the recorded patterns", Fix: "generate the manifest anew"}
			}
		}
	}
	if err := restate(in.RuntimeConfig, in.Permissions.Settings()); err != nil {
		return canon.InFile(string(configSurface(err)), err)
	}
	p, err := permit(in.Permissions.Settings(), in.DatabaseTools.Files)
	if err != nil {
		return canon.InFile(string(Permissions), err)
	}
	if p.Policy != in.Permissions.Policy || p.Readback != in.Permissions.Readback || !slices.Equal(p.DatabaseCommands, in.Permissions.DatabaseCommands) {
		return &canon.InputError{File: string(Permissions), Problem: "the stated policy is not what the settings give", Fix: "generate the manifest anew"}
	}
	return in.checkABI()
}

// checkABI holds the ABI against the trees it says it was read from.
func (in BehaviorInputs) checkABI() error {
	if err := in.RuntimeABI.check(); err != nil {
		return err
	}
	roots := map[Surface]Tree{HermesCode: in.HermesCode.Tree, DeploymentCode: in.DeploymentCode.Tree}
	forged := func(root Surface, path string) error {
		return &canon.InputError{File: string(RuntimeABI), Key: string(root) + "/" + path, Problem: "is not in the tree as stated", Fix: "generate the manifest anew"}
	}
	for _, i := range in.RuntimeABI.Interpreters {
		for _, p := range i.Packages {
			if e, found := roots[i.Root].find(p.Path + "/METADATA"); !found || e.Digest != p.Metadata {
				return forged(i.Root, p.Path)
			}
		}
	}
	for _, p := range in.RuntimeABI.Programs {
		if _, found := roots[p.Root].find(p.Path); !found {
			return forged(p.Root, p.Path)
		}
	}
	return nil
}
