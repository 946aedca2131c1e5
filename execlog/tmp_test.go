package execlog
import ("testing";"os";"fmt")
func TestTmp(t *testing.T){
 show:=Secrets{func(a,b string)bool{return false},func(string)bool{return false}}
 for _,p:=range [][2]string{{"base.compact.zst","again.compact.zst"},{"base.compact.zst","base.json"},{"base.json","base.binary"},{"base.compact.zst","input.compact.zst"},{"base.json","input.json"},{"base.json","runfiles.json"},{"base.compact.zst","runfiles.compact.zst"},{"base.compact.zst","runfiles.json"},{"base.compact.zst","environment.compact.zst"},{"base.compact.zst","path.compact.zst"},{"base.compact.zst","opt.compact.zst"},{"base.compact.zst","fewer.compact.zst"},{"stamp-a.compact.zst","stamp-b.compact.zst"},{"random-a.compact.zst","random-b.compact.zst"},{"base.compact.zst","tool.compact.zst"},{"base.compact.zst","external.compact.zst"},{"base.compact.zst","folder.compact.zst"},{"base.compact.zst","mode.compact.zst"}}{
  a,err:=os.Open("testdata/logs/"+p[0]); if err!=nil{t.Error(err);continue}
  b,err:=os.Open("testdata/logs/"+p[1]); if err!=nil{t.Error(err);continue}
  c,err:=Compare(Source{p[0],a},Source{p[1],b},show,Limits{})
  if err!=nil{t.Error(p, err);continue}
  fmt.Println("=======",c.Text())
 }
}
