package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// diskMegabytes is how large the disk of a process is. It is a file system of its own, in memory,
// so that it can be full while those of others are not.
const diskMegabytes = 512

// mountDisk makes the disk, empty, where the data of the process are.
func (p *process) mountDisk(ctx context.Context) error {
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return err
	}
	return command(ctx, "mount", "-t", "tmpfs", "-o", fmt.Sprintf("mode=0700,size=%dm", diskMegabytes), "divan-"+p.ns, p.dir)
}

// unmountDisks takes away all disks below a directory, with what they hold; those of a run that was killed too.
func unmountDisks(ctx context.Context, dir string) {
	mounted, _ := filepath.Glob(filepath.Join(dir, "*")) // the pattern is well formed
	for _, at := range mounted {
		_ = command(ctx, "umount", "--lazy", at) // a log file, or none is mounted there
	}
}

// ballast is the file that takes the space on a full disk.
func (p *process) ballast() string { return filepath.Join(p.dir, "ballast") }

// fillDisk takes all space of the disk but so many bytes.
func (p *process) fillDisk(leave int64) error {
	var is syscall.Statfs_t
	if err := syscall.Statfs(p.dir, &is); err != nil {
		return err
	}
	size := int64(is.Bavail)*is.Bsize - leave
	if size <= 0 {
		return nil
	}
	f, err := os.OpenFile(p.ballast(), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	for err = syscall.ENOSPC; errors.Is(err, syscall.ENOSPC) && size > 0; size -= 1 << 20 { // the program may be faster
		err = syscall.Fallocate(int(f.Fd()), 0, 0, size)
	}
	return errors.Join(err, f.Close())
}

// emptyDisk gives the space back.
func (p *process) emptyDisk() error {
	if err := os.Remove(p.ballast()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// diskFault returns a disk that is full: to the last byte, or but for something that is kept for what has to go on.
func (c *cluster) diskFault(p *process) fault {
	leave := c.rng.Int64N(30 << 20)
	if c.rng.IntN(3) == 0 {
		leave = 0
	}
	return fault{
		fmt.Sprintf("the disk of %s is full but for %d KB", p.ns, leave>>10),
		func(context.Context) error { return p.fillDisk(leave) },
		func(context.Context) error { return p.emptyDisk() },
	}
}
