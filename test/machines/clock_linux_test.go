//go:build machines

package machines

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// skewVariable has the seconds by which the wall clock of a machine's programs differs from the
// host's.
const skewVariable = "LOCKKEEPER_TEST_SKEW"

// shiftClock shifts the wall clock of this process, if skewVariable says so. No namespace shifts
// this clock, and a static program uses no library that could be replaced, apart from the one of
// the kernel that is mapped into each process. This function replaces the code that reads clocks
// there. The new code makes the system call and adds the skew to the wall clock.
func shiftClock() error {
	text := os.Getenv(skewVariable)
	if text == "" {
		return nil
	}
	skew, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return fmt.Errorf("%s: %w", skewVariable, err)
	}
	if runtime.GOARCH != "amd64" {
		return errors.New("the clock can be shifted only on amd64")
	}
	library, err := vdso()
	if err != nil {
		return err
	}
	read, err := symbol(library, "__vdso_clock_gettime")
	if err != nil {
		return err
	}
	code := []byte{0xb8, 0xe4, 0, 0, 0, // mov eax, SYS_clock_gettime
		0x0f, 0x05, // syscall
		0x85, 0xff, // test edi, edi: is it CLOCK_REALTIME?
		0x75, 0x0d, // jnz to ret
		0x48, 0xb9} // movabs rcx, skew
	code = binary.LittleEndian.AppendUint64(code, uint64(skew))
	code = append(code, 0x48, 0x01, 0x0e, 0xc3) // add [rsi], rcx; ret
	free := len(library) - 32
	if slices.ContainsFunc(library[free:], func(b byte) bool { return b != 0 }) || read%8 != 0 || len(code) > 32 {
		return errors.New("the kernel's library of this process has another form than expected")
	}
	if err := unix.Mprotect(library, unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC); err != nil {
		return fmt.Errorf("write into the kernel's library: %w", err)
	}
	copy(library[free:], code)
	// Other threads read the clock meanwhile, so the jump to the new code is one write.
	start := bytes.Clone(library[read : read+8])
	start[0] = 0xe9 // jmp
	binary.LittleEndian.PutUint32(start[1:], uint32(free-(read+5)))
	atomic.StoreUint64((*uint64)(unsafe.Pointer(&library[read])), binary.LittleEndian.Uint64(start))
	return unix.Mprotect(library, unix.PROT_READ|unix.PROT_EXEC)
}

// vdso returns the kernel's library in the memory of this process.
func vdso() ([]byte, error) {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(maps)) {
		if !strings.HasSuffix(line, "[vdso]\n") {
			continue
		}
		var from, to uintptr
		if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err != nil {
			return nil, err
		}
		return unsafe.Slice(*(**byte)(unsafe.Pointer(&from)), to-from), nil
	}
	return nil, errors.New("the kernel maps no library into this process")
}

// symbol returns where a function of the library begins.
func symbol(library []byte, name string) (int, error) {
	file, err := elf.NewFile(bytes.NewReader(library))
	if err != nil {
		return 0, err
	}
	list, err := file.DynamicSymbols()
	if err != nil {
		return 0, err
	}
	for _, s := range list {
		if s.Name == name {
			return int(s.Value), nil
		}
	}
	return 0, fmt.Errorf("the kernel's library has no function %s", name)
}
