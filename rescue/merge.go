package rescue

import "os"

// Merge drops an entry that Put returned if the shelf has an equal earlier one for which counts returns true. It returns
// the entry that stays. Of equal entries that several processes merge at the same time, the first one stays.
func (s *Shelf) Merge(e Entry, counts func(Entry) bool) (Entry, error) {
	var same *Entry
	_, err := s.within(func(shelf *os.File) error {
		ids, _, err := s.names(shelf)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if id >= e.ID {
				return nil
			}
			if size, err := s.sizeOf(shelf, id, contentName); err != nil || size != e.Size {
				continue // an entry that cannot be read is not equal
			}
			if o, err := s.read(shelf, id); err == nil && o.equals(e) && counts(o) {
				same = &o
				return nil
			}
		}
		return nil
	})
	if err != nil || same == nil {
		return e, err
	}
	return *same, s.Drop(e.ID)
}

// equals reports whether two entries are the same change of one holder for the same reason. The grants may differ. It
// ignores the reasons of failures and of archives, which differ from one attempt to the next.
func (e Entry) equals(o Entry) bool {
	if e.Kind == Unlanded || e.Kind == Archive {
		o.Reason = e.Reason
	}
	o.ID, o.At, o.GrantID = e.ID, e.At, e.GrantID
	return e == o
}
