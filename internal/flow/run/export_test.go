package run

// KeepStill lets no batch of a run land until done is called, as a batch does that was
// overtaken too often.
func (p *Pipeline) KeepStill() (done func()) {
	<-p.lander
	return func() { p.lander <- struct{}{} }
}
