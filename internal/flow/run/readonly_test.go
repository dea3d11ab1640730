package run

import "testing"

// A failure to write outside of the workspace is told apart from a failed test.
func TestReadOnlyPath(t *testing.T) {
	for output, want := range map[string]string{
		"open /root/.cache/go-build/00/x: read-only file system\n":                      "/root/.cache/go-build/00/x",
		"npm error Error: EROFS: read-only file system, mkdir '/home/me/.npm/_cacache'": "/home/me/.npm/_cacache",
		"OSError: [Errno 30] Read-only file system: '/work/space/out'\n":                "",
		"/root/.cache/go-build/00/x: no space left\n":                                   "",
		"FAIL: 1 is not 2\n": "",
	} {
		if got := readOnlyPath(output, "/work/space"); got != want {
			t.Errorf("%q: %q, want %q", output, got, want)
		}
	}
}
