package store

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// locked runs do while this process alone holds the lock file. The kernel drops the
// lock when the process ends, however it ends.
func locked(path string, do func() error) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return err
	}
	return do()
}
