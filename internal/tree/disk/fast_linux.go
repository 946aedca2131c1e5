package disk

import (
	"cmp"
	"crypto/sha256"
	"hash"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"selfsame.dev/selfsame/internal/tree"
)

const (
	batch = 32      // files a worker takes at a time
	large = 1 << 20 // bytes from which a file is worth sharing out the rest of its batch

	openFlags = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
)

// hashTree opens each folder from the handle of the root, never through a link, and each
// file from the handle of its folder. Workers share a stack of jobs.
func hashTree(root string, selector *tree.Selector, opts Options, faults *faults) []tree.Entry {
	fd, err := openAt(unix.AT_FDCWD, root, unix.O_DIRECTORY)
	if err != nil {
		faults.add("", failed(".", err))
		return nil
	}
	defer unix.Close(fd)
	p := &pool{root: fd, selector: selector, opts: opts, faults: faults, walked: opts.old, idle: opts.workers()}
	if !p.walked {
		// Old kernels do not have openat2, and some containers forbid it.
		probe, err := openBeneath(fd, ".")
		if err == nil {
			unix.Close(probe)
		}
		p.walked = err != nil
	}
	p.wake.L = &p.mu
	top := &folder{}
	p.stack = []job{{folder: top, list: true}}
	var workers sync.WaitGroup
	for range opts.workers() {
		workers.Go(func() {
			w := worker{pool: p, hasher: newHasher(opts), handle: -1}
			defer w.release()
			w.large = w.share
			w.work()
		})
	}
	workers.Wait()
	return top.appendTo(make([]tree.Entry, 0, p.files))
}

// folder is what was found in one folder: its files and the folders in it, both in byte
// order of path. Only the worker that has the job writes to it, and to each entry.
type folder struct {
	path    string
	files   []tree.Entry
	folders []*folder
}

// appendTo appends the files of f in byte order of whole paths: a folder stands where its
// path followed by a slash does.
func (f *folder) appendTo(list []tree.Entry) []tree.Entry {
	folders := f.folders
	for _, file := range f.files {
		for len(folders) > 0 && before(folders[0].path, file.Path) {
			list = folders[0].appendTo(list)
			folders = folders[1:]
		}
		list = append(list, file)
	}
	for _, inner := range folders {
		list = inner.appendTo(list)
	}
	return list
}

// before compares folder+"/" with path.
func before(folder, path string) bool {
	n := min(len(folder), len(path))
	if c := cmp.Compare(folder[:n], path[:n]); c != 0 {
		return c < 0
	}
	return len(path) > n && '/' < path[n]
}

// pool is what workers share. Its lock guards stack, idle, files and faults.
type pool struct {
	root     int
	selector *tree.Selector
	opts     Options
	walked   bool

	mu     sync.Mutex
	wake   sync.Cond
	stack  []job
	idle   int
	files  int
	faults *faults
}

// job is to list a folder, or to hash files[from:to] of it.
type job struct {
	folder   *folder
	list     bool
	from, to int
}

func (p *pool) push(jobs ...job) {
	p.mu.Lock()
	p.stack = append(p.stack, jobs...)
	p.mu.Unlock()
	p.wake.Broadcast()
}

func (p *pool) fault(path string, err error) {
	p.mu.Lock()
	p.faults.add(path, err)
	p.mu.Unlock()
}

type worker struct {
	*pool
	hasher
	folder *folder // open at handle
	handle int
	busy   bool
	job    job // what is left to do of it
}

func (w *worker) work() {
	defer w.leave()
	for w.next() {
		f := w.job.folder
		if w.folder != f {
			w.leave()
			fd, err := w.open(orRoot(f.path))
			if err != nil {
				w.fault(f.path, failed(orRoot(f.path), err))
				continue
			}
			w.folder, w.handle = f, fd
		}
		if w.job.list {
			if err := w.list(f); err != nil {
				f.files, f.folders = nil, nil
				w.fault(f.path, failed(orRoot(f.path), err))
			}
			continue
		}
		for w.job.from < w.job.to {
			entry := &f.files[w.job.from]
			w.job.from++
			name := entry.Path
			if f.path != "" {
				name = name[len(f.path)+1:]
			}
			if err := w.file(w.handle, name, entry); err != nil {
				w.fault(entry.Path, failed(entry.Path, err))
			}
		}
	}
}

// next takes the last job, or a part of it: a batch, or when others have nothing to do
// an equal share. It reports false when all work is done.
func (w *worker) next() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	workers := w.pool.opts.workers()
	if w.busy {
		w.idle++
	}
	for w.busy = false; len(w.stack) == 0; w.wake.Wait() {
		if w.idle == workers {
			w.wake.Broadcast()
			return false
		}
	}
	w.busy = true
	w.idle--
	last := len(w.stack) - 1
	w.job = w.stack[last]
	n := batch
	if w.idle > 0 {
		n = min(n, max(1, (w.job.to-w.job.from)/workers))
	}
	if !w.job.list && w.job.to-w.job.from > n {
		w.stack[last].from += n
		w.job.to = w.job.from + n
	} else {
		w.stack = w.stack[:last]
	}
	return true
}

// share gives back the rest of the batch, so that others need not wait for a large file.
func (w *worker) share() {
	if w.job.from < w.job.to {
		w.push(w.job)
		w.job.to = w.job.from
	}
}

func (w *worker) leave() {
	if w.handle >= 0 {
		unix.Close(w.handle)
	}
	w.folder, w.handle = nil, -1
}

// open opens the folder at path without following a link anywhere on the way.
func (w *worker) open(path string) (int, error) {
	if !w.walked {
		return openBeneath(w.root, path)
	}
	at := w.root
	for element := range strings.SplitSeq(path, "/") {
		fd, err := openAt(at, element, unix.O_DIRECTORY)
		if at != w.root {
			unix.Close(at)
		}
		if err != nil {
			return -1, err
		}
		at = fd
	}
	return at, nil
}

// list reads the folder at w.handle and pushes what is to do in it.
func (w *worker) list(f *folder) error {
	var before, after unix.Stat_t
	if err := unix.Fstat(w.handle, &before); err != nil {
		return err
	}
	w.pool.opts.atOpened(orRoot(f.path))
	for {
		n, err := unix.Getdents(w.handle, w.buf[:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		for left := w.buf[:n]; len(left) > 0; {
			// struct linux_dirent64: inode 8, offset 8, length 2, type 1, name with a zero byte.
			length := *(*uint16)(unsafe.Pointer(&left[16]))
			kind := left[18]
			name := unix.ByteSliceToString(left[19:length])
			left = left[length:]
			if name != "." && name != ".." {
				w.item(f, below(f.path, name), name, kind)
			}
		}
	}
	if err := unix.Fstat(w.handle, &after); err != nil {
		return err
	}
	if before.Mtim != after.Mtim || before.Ctim != after.Ctim {
		return changed(orRoot(f.path))
	}
	slices.SortFunc(f.files, func(a, b tree.Entry) int { return cmp.Compare(a.Path, b.Path) })
	slices.SortFunc(f.folders, func(a, b *folder) int { return cmp.Compare(a.path+"/", b.path+"/") })
	jobs := make([]job, 0, len(f.folders)+1)
	for _, inner := range f.folders {
		jobs = append(jobs, job{folder: inner, list: true})
	}
	if len(f.files) > 0 {
		jobs = append(jobs, job{folder: f, to: len(f.files)}) // last, so that this worker goes on with the open folder
	}
	w.mu.Lock()
	w.files += len(f.files)
	w.mu.Unlock()
	w.push(jobs...)
	return nil
}

func (w *worker) item(f *folder, path, name string, kind byte) {
	mode, ok := modes[kind]
	if !ok || w.pool.opts.old { // this file system does not tell
		var stat unix.Stat_t
		if err := unix.Fstatat(w.handle, name, &stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			w.fault(path, failed(path, err))
			return
		}
		mode = modeOf(&stat)
	}
	read, enter, err := admit(w.selector, path, mode)
	switch {
	case err != nil:
		w.fault(path, err)
	case enter:
		f.folders = append(f.folders, &folder{path: path})
	case read:
		f.files = append(f.files, tree.Entry{Path: path})
	}
}

var modes = map[byte]fs.FileMode{
	unix.DT_REG: 0, unix.DT_DIR: fs.ModeDir, unix.DT_LNK: fs.ModeSymlink, unix.DT_FIFO: fs.ModeNamedPipe,
	unix.DT_SOCK: fs.ModeSocket, unix.DT_BLK: fs.ModeDevice, unix.DT_CHR: fs.ModeDevice | fs.ModeCharDevice,
}

func modeOf(stat *unix.Stat_t) fs.FileMode {
	mode, ok := modes[byte(stat.Mode&unix.S_IFMT>>12)] // the types of dirents are those bits
	if !ok {
		return fs.ModeIrregular
	}
	return mode
}

// hasher is what one worker needs to hash files.
type hasher struct {
	opts Options
	hash hash.Hash
	buffer
	large func() // called before the content of a large file is read
}

func newHasher(opts Options) hasher {
	return hasher{opts: opts, hash: sha256.New(), buffer: newBuffer(), large: func() {}}
}

// at fills in the size and the digest of the file called name, from the current folder.
func (h *hasher) at(name string, entry *tree.Entry) error { return h.file(unix.AT_FDCWD, name, entry) }

// file fills in the size and the digest of the file called name in the folder at.
func (h *hasher) file(at int, name string, entry *tree.Entry) error {
	fd, err := openAt(at, name, 0)
	if err == unix.ENXIO { // a socket, or a device without a driver
		var stat unix.Stat_t
		if unix.Fstatat(at, name, &stat, unix.AT_SYMLINK_NOFOLLOW) == nil {
			return irregular(entry.Path, modeOf(&stat))
		}
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var before, after unix.Stat_t
	if err := unix.Fstat(fd, &before); err != nil {
		return err
	}
	if mode := modeOf(&before); !mode.IsRegular() {
		return irregular(entry.Path, mode)
	}
	if before.Size >= large {
		h.large()
	}
	h.opts.atOpened(entry.Path)
	h.hash.Reset()
	var size int64
	for size <= before.Size {
		n, err := unix.Read(fd, h.buf[:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		h.hash.Write(h.buf[:n])
		size += int64(n)
		if n == 0 || size == before.Size && n < len(h.buf) { // there was room for more, so this is the end
			break
		}
	}
	if err := unix.Fstat(fd, &after); err != nil {
		return err
	}
	if size != before.Size || size != after.Size || before.Mtim != after.Mtim || before.Ctim != after.Ctim {
		return changed(entry.Path)
	}
	entry.Size = size
	h.hash.Sum(entry.Digest[:0])
	return nil
}

func openAt(at int, name string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(at, name, openFlags|flags, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// openBeneath opens the folder at the slash path, which must lead there from the folder at
// without links and without leaving it.
func openBeneath(at int, path string) (int, error) {
	how := unix.OpenHow{
		Flags:   openFlags | unix.O_DIRECTORY,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	for {
		fd, err := unix.Openat2(at, path, &how)
		if err != unix.EINTR {
			return fd, err
		}
	}
}
