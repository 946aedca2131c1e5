package manifest_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"selfsame.dev/selfsame/manifest/leotest"
)

// Whatever is read into an identity is compared: every field is changed in turn, those of the future included.
func TestSame(t *testing.T) {
	_, s := leotest.Build(t, leotest.Copy(t, ".."))
	_, again := leotest.Build(t, leotest.Copy(t, ".."))
	if !s.Same(again) {
		t.Fatal("two readings of the same bytes are not the same")
	}
	noIdentity := map[string]bool{".Origins": true, ".ObservationKey": true, ".Template.Credentials": true}
	changed := 0
	var walk func(at string, v reflect.Value)
	walk = func(at string, v reflect.Value) {
		try := func(to any) {
			t.Helper()
			before := reflect.New(v.Type()).Elem()
			before.Set(v)
			v.Set(reflect.ValueOf(to).Convert(v.Type()))
			if s.Same(again) != noIdentity[at] || again.Same(s) != noIdentity[at] {
				t.Errorf("%s = %v: same is %v", at, to, s.Same(again))
			}
			v.Set(before)
			changed++
		}
		switch {
		case strings.HasSuffix(at, ".Files"): // where the bytes of the entries are
		case strings.HasSuffix(at, ".Problem"):
			try(errors.New("refused"))
		case noIdentity[at] && v.Kind() == reflect.Map:
			try(reflect.MakeMap(v.Type()).Interface())
		case noIdentity[at]:
			try(reflect.MakeSlice(v.Type(), 1, 1).Interface())
		case v.Kind() == reflect.Struct:
			for i := range v.NumField() {
				walk(at+"."+v.Type().Field(i).Name, v.Field(i))
			}
		case v.Kind() == reflect.Slice || v.Kind() == reflect.Array:
			if v.Kind() == reflect.Slice && v.Len() > 0 {
				try(v.Slice(0, v.Len()-1).Interface())
			}
			for i := range min(v.Len(), 3) {
				walk(at+"[]", v.Index(i))
			}
		case v.Kind() == reflect.String:
			try(v.String() + "x")
		case v.CanInt():
			try(v.Int() + 1)
		case v.CanUint():
			try(v.Uint() ^ 1)
		default:
			t.Errorf("%s is a %s", at, v.Kind())
		}
	}
	walk("", reflect.ValueOf(&again).Elem())
	if changed < 100 {
		t.Errorf("control: only %d changes were tried", changed)
	}
}
