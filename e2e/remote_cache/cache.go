package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	port  = 8080
	store = scratch + "/cache/store" // what hosts have put
	slow  = scratch + "/cache/slow"  // while this file is there, contents trickle
	logs  = scratch + "/cache/access.log"
)

// The whole HTTP cache. What is not in the store is looked for in the seed, whose layout is that of
// Bazel's disk cache; nothing is ever put there.
const nginxConf = `daemon off;
user root;
worker_processes 2;
pid %[1]s/nginx.pid;
error_log stderr crit;
events {}
http {
  log_format short '$request_method $request_uri $status';
  access_log %[1]s/access.log short;
  client_body_temp_path %[1]s/tmp;
  client_max_body_size 0;
  server {
    listen %[2]d;
    root %[1]s/store;
    location /cache/ {
      dav_methods PUT;
      create_full_put_path on;
      error_page 404 = @seed;
      if (-f %[1]s/slow) {
        set $slow 2k;
      }
      limit_rate $slow;
    }
    location @seed {
      root %[3]s;
      rewrite "^/cache/(ac|cas)/(..)(.*)$" /$1/$2/$2$3 break;
    }
  }
}
`

// serve starts nginx; it ends with the namespace.
func serve(seed string) error {
	dir := filepath.Dir(store)
	if err := write(dir+"/nginx.conf", fmt.Appendf(nil, nginxConf, dir, port, seed)); err != nil {
		return err
	}
	if err := os.MkdirAll(store, 0o755); err != nil {
		return err
	}
	cmd := exec.Command("nginx", "-e", "stderr", "-c", dir+"/nginx.conf")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	for range 100 {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return conn.Close()
		}
		time.Sleep(50 * time.Millisecond)
	}
	return errors.New("nginx does not answer")
}

// entry is the path of an action result ("ac") or of content ("cas") in the store.
func entry(kind, hash string) string { return filepath.Join(store, "cache", kind, hash) }

// requests returns the lines of the access log from the given one on.
func requests(from int) []string {
	data, _ := os.ReadFile(logs)
	lines := strings.Split(string(data), "\n")
	return lines[min(from, len(lines)-1) : len(lines)-1]
}

// put adds content to the store as an attacker does, under its right name.
func put(data []byte) (string, error) {
	sum := sha256.Sum256(data)
	hash := hex.EncodeToString(sum[:])
	return hash, write(entry("cas", hash), data)
}

// replaced alters a stored file for the time of a call.
func replaced(path string, data []byte, call func() error) error {
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	existed := err == nil
	if err := write(path, data); err != nil {
		return err
	}
	err = call()
	if !existed {
		return errors.Join(err, os.Remove(path))
	}
	return errors.Join(err, os.WriteFile(path, old, 0o644))
}

// pointElsewhere returns an action result in which one output is another content of equal size.
func pointElsewhere(result []byte, from, to string) ([]byte, error) {
	if n := bytes.Count(result, []byte(from)); n != 1 {
		return nil, fmt.Errorf("the action result names %s %d times", from, n)
	}
	return bytes.Replace(result, []byte(from), []byte(to), 1), nil
}

// actionResult is an ActionResult (remote_execution.proto) of one output file and exit status 0.
func actionResult(path, hash string, size int) []byte {
	digest := append(field(1, []byte(hash)), 2<<3)
	digest = binary.AppendUvarint(digest, uint64(size))
	return field(2, append(field(1, []byte(path)), field(2, digest)...))
}

// field is a length-delimited field of Protocol Buffers.
func field(number int, data []byte) []byte {
	out := binary.AppendUvarint(nil, uint64(number<<3|2))
	return append(binary.AppendUvarint(out, uint64(len(data))), data...)
}
