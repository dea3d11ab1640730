package run

// KeepStill takes the lander, so no batch of the run can land until done is called. A batch that
// was overtaken too often does the same.
func (p *Pipeline) KeepStill() (done func()) {
	<-p.lander
	return func() { p.lander <- struct{}{} }
}
