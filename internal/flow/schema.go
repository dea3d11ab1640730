package flow

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"lockkeeper"
	"lockkeeper/internal/encoding/jsonform"
	"lockkeeper/internal/encoding/jsonplace"
)

// ScreenFile is the name of a screen's document for Check and in the published schemas. In the
// folder of the screen the file is named AnalysisFile, like that of a controller.
const ScreenFile = "screen/" + AnalysisFile

// manifestFile is the name of a screen manifest in the published schemas.
const manifestFile = "screens.json"

// answers returns the schemas of agents' answers by name. Every member is required, because some
// programs do not support optional members.
func answers() map[string]form { return formsOf(false, answerTypes()) }

func answerTypes() map[string]described {
	set := map[string]described{QuestionAnswer: {Explanation{}, "The answer to a question of a person."}}
	for _, f := range All() {
		for _, p := range f.Phases {
			if p.Form.value != nil {
				set[p.Answer] = p.Form
			}
		}
	}
	return set
}

// documents returns the schemas of files by name.
func documents() map[string]form {
	sources := map[string]described{
		AnalysisFile:     {Analysis{}, "The purpose of a controller and how it works today."},
		ExtractFile:      {Extract{}, "The possible improvements."},
		SynthesizeFile:   {Synthesis{}, "The possible items after a comparison with the code."},
		AuditFile:        {Audit{}, "The ready items after earlier decisions were applied."},
		DecisionsFile:    {Decisions{}, "The decisions of people on the items of a unit."},
		BatchesFile:      {Plan{}, "The batches of a unit."},
		ApplyFile:        {Applied{}, "The change that an agent made for a batch."},
		VerificationFile: {Verification{}, "The result of comparing the changed code with the original."},
		ReviewFile:       {Review{}, "A person's review of a diff before it lands."},
		LandedFile:       {Landed{}, "The landings of a batch."},
		ScreenFile:       {ScreenDoc{}, "The findings for one screen."},
	}
	for _, p := range checkPhases() {
		sources[p.Output] = described{Checked{}, "The results of the " + p.Checks + " of a batch."}
	}
	set := formsOf(true, sources)
	set[manifestFile] = formsOf(false, map[string]described{"": {Manifest{}, "The screens of a codebase."}})[""]
	return set
}

// A described is a value of a Go type, with the description of the type's schema.
type described struct {
	value any
	about string
}

func formsOf(stored bool, sources map[string]described) map[string]form {
	set := map[string]form{}
	for name, s := range sources {
		set[name] = maker{stored}.form(reflect.TypeOf(s.value), reflect.StructTag(fmt.Sprintf("doc:%q", s.about)))
		if stored {
			set[name]["properties"].(map[string]any)["lockkeeper"] = form{"type": "object", "description": "Who wrote the file, when and after which calls, with a hash of the rest."}
		}
	}
	return set
}

// plannedBatches are the batches in an agent's answer. They fit the type Plan.
type plannedBatches struct {
	Batches []struct {
		ID           string   `json:"id" text:"words" doc:"A short name of the batch. Other batches name it in \"after\"."`
		Title        string   `json:"title" text:"words" doc:"What the batch does, in a few words."`
		Items        []string `json:"items" min:"1" text:"words" doc:"Ids of the items that the batch implements." each:"Id of an item."`
		WriteTargets []string `json:"write_targets" min:"1" text:"words" doc:"Exact paths of the files that the batch changes or creates, relative to the root. Never a directory." each:"Path of one file, relative to the root."`
		Reads        []string `json:"reads" text:"words" doc:"Files and directories that the batch depends on but does not change." each:"Path relative to the root."`
		Effort       Level    `json:"effort" doc:"How much work the whole batch takes."`
		After        []string `json:"after" text:"words" doc:"Ids of the batches whose changes this batch needs." each:"Id of a batch."`
	} `json:"batches" doc:"The batches, in the order in which they should be done."`
}

// A summary is the answer of an agent that changes files.
type summary struct {
	Summary string `json:"summary" text:"words" doc:"What was changed and why, and what was left undone."`
}

// An Explanation is an agent's answer to a question of a person.
type Explanation struct {
	Answer string `json:"answer" text:"words" doc:"The answer as text for the person, with the files and lines that show it."`
}

// A screenAnswer is an agent's answer about a screen. It fits the type ScreenDoc.
type screenAnswer struct {
	Screen       string   `json:"screen" text:"words" doc:"Name of the screen."`
	Findings     []string `json:"findings" text:"words" doc:"The possible improvements, one per entry." each:"One finding: what, where, why it matters and what to do."`
	WriteTargets []string `json:"write_targets" text:"words" doc:"Exact paths of the files that the batch changes or creates, relative to the root. Never a directory." each:"Path of one file, relative to the root."`
}

type form map[string]any

// A maker makes the schemas of Go types. If stored is set, a schema is of a document and allows
// null for a list, because an empty list may be stored as null.
type maker struct{ stored bool }

// idForm is the form of ids and of file names.
const idForm = `^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`

// patterns has a regular expression for each value of the tag "text".
var patterns = map[string]string{"words": `\S`, "id": idForm, "sum": `^[0-9a-f]{64}$`}

// enums has the permitted texts of a type, separated by spaces.
var enums = map[reflect.Type]string{
	reflect.TypeFor[Level](): "high medium low", reflect.TypeFor[Decision](): "TODO DEFER REJECT", reflect.TypeFor[CheckState](): "passed failed skipped as_before",
}

// form returns the schema of a type. These tags of a field describe its value:
//
//	doc       what it is             each  what an element of the list is
//	text      a name of patterns     enum  the permitted texts
//	min       the shortest list      in    "document" for a member that answers do not have
//	required  the member is required although encoding may omit it
func (m maker) form(t reflect.Type, tag reflect.StructTag) form {
	f := form{}
	if about := tag.Get("doc"); about != "" {
		f["description"] = about
	}
	switch {
	case t.Kind() == reflect.Pointer:
		return m.form(t.Elem(), tag)
	case t == reflect.TypeFor[time.Time]():
		f["type"], f["format"] = "string", "date-time"
	case t == reflect.TypeFor[json.RawMessage]():
		f["type"] = []any{"string", "object"}
	case t == reflect.TypeFor[lockkeeper.Version]():
		f["type"], f["pattern"] = "string", `^(nothing|(file|dir) [0-7]{4} [0-9a-f]{64})$`
		f["description"] = `"nothing" if the file does not exist; otherwise its kind, permissions and the SHA-256 of its content.`
	case t.Kind() == reflect.Struct:
		m.object(f, t)
	case t.Kind() == reflect.Slice:
		f["type"] = "array"
		f["items"] = m.form(t.Elem(), reflect.StructTag(fmt.Sprintf("doc:%q text:%q", tag.Get("each"), tag.Get("text"))))
		if tag.Get("min") != "" {
			f["minItems"] = 1
		} else if m.stored {
			f["type"] = []any{"array", "null"}
		}
	case t.Kind() == reflect.String:
		f["type"] = "string"
		if values := cmp.Or(tag.Get("enum"), enums[t]); values != "" {
			f["enum"] = strings.Fields(values)
		} else if name := tag.Get("text"); name != "" {
			f["pattern"] = patterns[name]
		}
	case t.Kind() == reflect.Bool:
		f["type"] = "boolean"
	default:
		f["type"] = "integer"
	}
	return f
}

// object makes f the schema of a struct. The members of an embedded struct are members of f.
func (m maker) object(f form, t reflect.Type) {
	properties, required := map[string]any{}, []any{}
	for field := range t.Fields() {
		if field.Anonymous {
			inner := form{}
			m.object(inner, field.Type)
			maps.Copy(properties, inner["properties"].(map[string]any))
			required = append(required, inner["required"].([]any)...)
			continue
		}
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" || !m.stored && field.Tag.Get("in") == "document" {
			continue
		}
		properties[name] = m.form(field.Type, field.Tag)
		if options == "" || field.Tag.Get("required") != "" {
			required = append(required, name)
		}
	}
	if t == reflect.TypeFor[Decided]() { // a person may add an item without ratings
		for _, name := range []string{"impact", "effort", "rationale"} {
			member := properties[name].(form)
			delete(member, "pattern")
			if values, ok := member["enum"].([]string); ok {
				member["enum"] = append(values, "")
			}
			required = slices.DeleteFunc(required, func(other any) bool { return other == name })
		}
	}
	f["type"], f["properties"], f["required"], f["additionalProperties"] = "object", properties, required, false
}

// AnswerSchema returns the JSON schema of an agent's answer, or nil for an empty name. It panics
// for an unknown name. The schema is self-contained and names no draft, because some validators
// would fetch it.
func AnswerSchema(name string) []byte {
	if name == "" {
		return nil
	}
	form, ok := answers()[name]
	if !ok {
		panic(fmt.Sprintf("flow: unknown answer %q; known are %s", name, strings.Join(slices.Sorted(maps.Keys(answers())), ", ")))
	}
	return form.text()
}

func (f form) document(file string) form {
	top := maps.Clone(f)
	top["$schema"], top["title"] = "https://json-schema.org/draft/2020-12/schema", file
	return top
}

func (f form) text() []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(f); err != nil {
		panic(fmt.Sprintf("flow: schema: %v", err)) // cannot happen: a form has only maps, lists and strings
	}
	return b.Bytes()
}

// compiled parses the schemas of documents once.
var compiled = sync.OnceValue(func() map[string]*jsonform.Form {
	set := map[string]*jsonform.Form{}
	for file, form := range documents() {
		parsed, err := jsonform.Parse(form.document(file).text())
		if err != nil {
			panic(fmt.Sprintf("flow: schema of %s: %v", file, err))
		}
		set[file] = parsed
	}
	return set
})

// HasSchema reports whether documents with this file name have a schema of their own.
func HasSchema(file string) bool { return compiled()[file] != nil }

func answerForm(name string) *jsonform.Form {
	parsed, err := jsonform.Parse(formsOf(true, answerTypes())[name].text())
	if err != nil {
		panic(fmt.Sprintf("flow: schema of the answer %s: %v", name, err))
	}
	return parsed
}

// fits checks a JSON text against the schema of a document. Messages use name for the text.
func fits(document, name string, text []byte) error {
	schema, ok := compiled()[document]
	if !ok {
		return &lockkeeper.InputError{Field: "document", Value: document, Reason: "unknown",
			Next: "use one of " + strings.Join(slices.Sorted(maps.Keys(compiled())), ", ")}
	}
	return fitsSchema(schema, name, text)
}

// fitsSchema checks a JSON text against a schema.
func fitsSchema(schema *jsonform.Form, name string, text []byte) error {
	doc, err := jsonform.Value(text)
	if err != nil {
		return notJSON(name, text, err)
	}
	bad := schema.Check(doc)
	if bad == nil {
		return nil
	}
	f := &fault{at: bad.Path, err: errors.New(bad.Reason)}
	switch {
	case len(bad.Unknown) > 0:
		f.at = append(f.at, bad.Unknown[0])
		f.err = lockkeeper.WithNext(errors.New("unknown member"), "remove it, or correct its name")
	case len(bad.Missing) > 0:
		f.err = lockkeeper.WithNext(fmt.Errorf("missing %s", strings.Join(bad.Missing, ", ")), "add it")
	}
	return f.inText(name, text)
}

// notJSON returns an error with the position at which a text is not JSON.
func notJSON(name string, text []byte, err error) error {
	e := &DocumentError{File: name, Err: fmt.Errorf("not JSON: %w", err)}
	var at *json.SyntaxError
	switch {
	case errors.As(err, &at):
		e.Line, e.Column = jsonplace.Position(text, at.Offset-1)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		e.Err = errors.New("not JSON: unexpected end")
		e.Line, e.Column = jsonplace.Position(text, int64(len(text)))
	}
	return e
}
