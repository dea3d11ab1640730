package resource_test

import (
	"os"
	"path/filepath"
	"testing"

	"lockkeeper/internal/compat/resource"
	"lockkeeper/internal/project/config"
)

// BenchmarkTables measures the cost of a table for every command, and the additional cost for op.
func BenchmarkTables(b *testing.B) {
	for _, name := range resource.PresetNames() {
		p, err := resource.PresetOf(name)
		if err != nil {
			b.Fatal(err)
		}
		path := filepath.Join(b.TempDir(), config.FileName)
		if err := os.WriteFile(path, []byte(p.Tables), 0o600); err != nil {
			b.Fatal(err)
		}
		b.Run("load/"+name, func(b *testing.B) {
			for b.Loop() {
				if _, err := config.Load(path, os.LookupEnv, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("of/"+name, func(b *testing.B) {
			c, err := config.Load(path, os.LookupEnv, nil)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := resource.Of(c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
