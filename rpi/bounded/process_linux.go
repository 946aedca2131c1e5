package bounded

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes put the child into a group of its own that dies with its parent.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// reap waits for the end of the program, has its group killed, and reaps it last: until then
// its number cannot be given to another group.
func reap(cmd *exec.Cmd, killGroup func()) error {
	for unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	killGroup()
	return cmd.Wait()
}
