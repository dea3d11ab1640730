package lease

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper"
)

// A breakRecord is the audit line about a broken lease file.
type breakRecord struct {
	At         time.Time              `json:"at"`
	Actor      lockkeeper.Actor       `json:"actor"`
	Action     string                 `json:"action"`
	Target     string                 `json:"target"`
	Previous   *previousHolder        `json:"previous_holder"` // null if the file did not name one
	Reason     string                 `json:"reason"`
	Conditions []lockkeeper.Condition `json:"conditions"`
}

// A previousHolder is the holder of a broken lease file, without the token, which is
// secret.
type previousHolder struct {
	Owner     string `json:"owner"`
	PID       int    `json:"pid"`
	CreatedAt stamp  `json:"created_at"`
	ExpiresAt stamp  `json:"expires_at"`
	RenewedAt stamp  `json:"last_renewed_at"`
}

// audit records that the file is about to be broken. If it fails, the file must not be
// broken.
func (at *access) audit(v verdict) (err error) {
	b := breakRecord{At: at.now.Wall.UTC(), Actor: lockkeeper.Actor{Name: at.owner, Kind: lockkeeper.ActorHolder}, Action: "break", Target: at.path,
		Reason: conditionsText(v.conditions), Conditions: v.conditions}
	if p := at.found.payload; p != nil {
		b.Previous = &previousHolder{p.Owner, p.PID, p.CreatedAt, p.ExpiresAt, p.RenewedAt}
	}
	line, err := json.Marshal(b)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(at.path+".audit.jsonl", os.O_WRONLY|os.O_APPEND|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, filePerm)
	if err != nil {
		return fmt.Errorf("lease file %s is stale but was not broken because the audit line cannot be written: %w", at.path, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = f.Write(append(line, '\n'))
	return err
}

// conditionsText formats the checked conditions.
func conditionsText(list []lockkeeper.Condition) (text string) {
	for i, c := range list {
		if i > 0 {
			text += "; "
		}
		text += c.Name + " (" + c.Fact + ")"
	}
	return text
}
