package child

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// stat is what proc_pid_stat(5) tells of one process.
type stat struct {
	Process
	parent  int
	state   byte
	threads int64
}

// dead reports whether no thread is left. A process whose first thread has ended is shown as a
// zombie, too, and its other threads run on.
func (s stat) dead() bool { return (s.state == 'Z' || s.state == 'X') && s.threads <= 1 }

// readStat reads /proc/PID/stat; ok is false when there is no such process. Plain system calls: a scan
// makes hundreds, and the line is far shorter than the buffer and comes in one read.
func readStat(pid int) (s stat, ok bool) {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return stat{}, false
	}
	defer unix.Close(fd)
	var buf [1024]byte
	n, err := unix.Read(fd, buf[:])
	if err != nil || n == len(buf) {
		return stat{}, false
	}
	return parseStat(buf[:n])
}

// parseStat starts behind the last ')': the name before it is the process's own
// choice and may hold anything.
func parseStat(data []byte) (s stat, ok bool) {
	open, shut := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
	if open < 1 || shut < open {
		return stat{}, false
	}
	fields := bytes.Fields(data[shut+1:])
	if len(fields) < 20 || len(fields[0]) != 1 {
		return stat{}, false
	}
	number := func(field []byte) int64 {
		n, err := strconv.ParseInt(string(field), 10, 64)
		ok = ok && err == nil
		return n
	}
	ok = true
	s.state = fields[0][0]
	s.PID = int(number(bytes.TrimSpace(data[:open])))
	s.parent = int(number(fields[1]))
	s.Session = int(number(fields[3]))
	s.threads = number(fields[17])
	s.StartTicks = number(fields[19])
	return s, ok
}

// scan lists every process that this one can see, by pid.
func scan() (map[int]stat, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	all := make(map[int]stat, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if s, ok := readStat(pid); ok {
			all[pid] = s
		}
	}
	if _, ok := all[os.Getpid()]; !ok {
		return nil, errors.New("/proc does not show this process: mount the proc of this PID namespace")
	}
	return all, nil
}

// counters are the kernel's, of proc_loadavg(5) and proc_stat(5).
type counters struct {
	forks uint64 // processes and threads made since boot
	tasks uint64 // of them alive
	last  int    // the number given last in this PID namespace
}

func readCounters() (c counters, ok bool) {
	var load struct{ one, five, fifteen float64 }
	if data, err := os.ReadFile("/proc/loadavg"); err == nil {
		var running int
		_, err = fmt.Sscanf(string(data), "%f %f %f %d/%d %d", &load.one, &load.five, &load.fifteen, &running, &c.tasks, &c.last)
		ok = err == nil
	}
	data, _ := os.ReadFile("/proc/stat")
	_, forks, _ := bytes.Cut(data, []byte("\nprocesses "))
	n, _ := fmt.Sscan(string(forks), &c.forks)
	return c, ok && n == 1
}

// since reads every process numbered from first on: numbers are given in ascending order, so that this is all
// that is younger than first. looked is how many numbers that are, and 0 where it cannot be known: since the counters
// were before so many were given that they may have begun anew at the bottom, or /proc does not show this process.
// (A privileged process can choose the number of the next.)
func since(first int, before counters) (all map[int]stat, looked int) {
	now, ok := readCounters()
	_, self := readStat(os.Getpid())
	data, err := os.ReadFile("/proc/sys/kernel/pid_max")
	if !ok || !self || err != nil || first == 0 || before.forks == 0 || now.last < first {
		return nil, 0
	}
	most, _ := strconv.ParseUint(string(bytes.TrimSpace(data)), 10, 64)
	if now.forks-before.forks+now.tasks > most/2 {
		return nil, 0
	}
	return readRange(first, now.last), now.last - first + 1
}

// readRange reads the processes numbered from first to last.
func readRange(first, last int) map[int]stat {
	all := map[int]stat{}
	for pid := first; pid <= last; pid++ {
		// Threads have numbers, too, and a /proc entry that no listing shows; only a process can be opened.
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue
		}
		if s, ok := readStat(pid); ok {
			all[pid] = s
		}
		unix.Close(fd)
	}
	return all
}

// below returns what descends from root, root not included. A process in except,
// with everything below it, is left out. torn says that some parent was missing: it ended during the scan,
// and what hung on it has moved.
func below(all map[int]stat, root int, except map[Process]bool) (found []stat, torn bool) {
	const (
		unknown = iota
		inside
		outside
	)
	verdict := map[int]int{root: inside, 0: outside}
	var path []int
	for pid := range all {
		path = path[:0]
		at := pid
		for verdict[at] == unknown {
			s, ok := all[at]
			torn = torn || !ok
			if !ok || except[s.Process] {
				verdict[at] = outside
				break
			}
			verdict[at] = outside // ends a loop that a torn scan can show
			path = append(path, at)
			at = s.parent
		}
		for _, p := range path {
			verdict[p] = verdict[at]
		}
	}
	for pid, s := range all {
		if pid != root && verdict[pid] == inside {
			found = append(found, s)
		}
	}
	return found, torn
}

// newest lists the processes that got the last few numbers: the walk through all takes so long that
// a chain in which each forks the next and ends is gone wherever the walk looks. A hint, nothing more.
func newest() map[int]stat {
	const few = 64
	load, err := os.ReadFile("/proc/loadavg") // its last field is the last number given
	if err != nil {
		return nil
	}
	last, _ := strconv.Atoi(string(bytes.TrimSpace(load[bytes.LastIndexByte(load, ' ')+1:])))
	return readRange(max(1, last-few+1), last)
}

// childless reports whether this process has no child, not even a dead one: the kernel's own answer.
func childless() bool {
	for {
		err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, nil)
		if !errors.Is(err, unix.EINTR) {
			return errors.Is(err, unix.ECHILD)
		}
	}
}

// kill sends sig to exactly the process that was seen: the pidfd holds whatever has
// the number now, and the start time, read while it is held, says whether that is it.
func kill(seen Process, sig unix.Signal) error {
	fd, err := unix.PidfdOpen(seen.PID, 0)
	if err != nil {
		return gone(err)
	}
	defer unix.Close(fd)
	now, ok := readStat(seen.PID)
	if !ok || now.StartTicks != seen.StartTicks {
		return nil
	}
	return gone(unix.PidfdSendSignal(fd, sig, nil, 0))
}

func gone(err error) error {
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// traced reports whether the environment that pid started with holds mark. An
// unreadable one (another user's, or a dead process) does not count.
func traced(pid int, mark []byte) bool {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return err == nil && bytes.Contains(env, mark)
}
