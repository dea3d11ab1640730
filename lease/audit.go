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

// breach is the line about a lease that is broken.
type breach struct {
	At         time.Time              `json:"at"`
	Actor      lockkeeper.Actor       `json:"actor"`
	Action     string                 `json:"action"`
	Target     string                 `json:"target"`
	Previous   *previous              `json:"previous_holder"` // null: the file did not tell
	Reason     string                 `json:"reason"`
	Conditions []lockkeeper.Condition `json:"conditions"`
}

// previous is whose lease it was. The token is a secret.
type previous struct {
	Owner     string `json:"owner"`
	PID       int    `json:"pid"`
	CreatedAt stamp  `json:"created_at"`
	ExpiresAt stamp  `json:"expires_at"`
	RenewedAt stamp  `json:"last_renewed_at"`
}

// audit records that the file is about to be broken. What cannot be recorded is not
// done.
func (at *visit) audit(v verdict) (err error) {
	b := breach{At: at.now.Wall.UTC(), Actor: lockkeeper.Actor{Name: at.owner, Kind: lockkeeper.ActorHolder}, Action: "break", Target: at.path,
		Reason: conditionsText(v.conditions), Conditions: v.conditions}
	if p := at.found.payload; p != nil {
		b.Previous = &previous{p.Owner, p.PID, p.CreatedAt, p.ExpiresAt, p.RenewedAt}
	}
	line, err := json.Marshal(b)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(at.path+".audit.jsonl", os.O_WRONLY|os.O_APPEND|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, filePerm)
	if err != nil {
		return fmt.Errorf("lease %s is stale and not broken, because that cannot be recorded: %w", at.path, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = f.Write(append(line, '\n'))
	return err
}

// conditionsText spells what was checked.
func conditionsText(list []lockkeeper.Condition) (text string) {
	for i, c := range list {
		if i > 0 {
			text += "; "
		}
		text += c.Name + " (" + c.Fact + ")"
	}
	return text
}
