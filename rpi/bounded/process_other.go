//go:build unix && !linux

package bounded

import (
	"os/exec"
	"syscall"
)

// attributes put the child into a group of its own.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// reap reaps the program and has what is left of its group killed.
func reap(cmd *exec.Cmd, killGroup func()) error {
	err := cmd.Wait()
	killGroup()
	return err
}
