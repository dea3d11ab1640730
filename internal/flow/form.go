package flow

// A form is a JSON schema.
type form map[string]any

// A member is a member of an object.
type member struct {
	name     string
	required bool
	form     form
}

func must(name string, f form) member { return member{name, true, f} }
func may(name string, f form) member  { return member{name, false, f} }

// object returns the form of an object with these members and no others.
func object(about string, members ...member) form {
	properties, required := map[string]any{}, []any{}
	for _, m := range members {
		properties[m.name] = m.form
		if m.required {
			required = append(required, m.name)
		}
	}
	f := described("object", about)
	f["properties"], f["required"], f["additionalProperties"] = properties, required, false
	return f
}

// described returns the form of a type. It adds a description if about is not empty.
func described(typ, about string) form {
	f := form{"type": typ}
	if about != "" {
		f["description"] = about
	}
	return f
}

func text(about string) form { return described("string", about) }

// words returns the form of text that is not blank.
func words(about string) form {
	return matching(about, `\S`)
}

func matching(about, pattern string) form {
	f := text(about)
	f["pattern"] = pattern
	return f
}

func oneOf[T ~string](about string, values ...T) form {
	f := text(about)
	f["enum"] = values
	return f
}

func list(about string, of form) form {
	f := described("array", about)
	f["items"] = of
	return f
}

func some(about string, of form) form {
	f := list(about, of)
	f["minItems"] = 1
	return f
}

func whole(about string) form { return described("integer", about) }
func yesNo(about string) form { return form{"type": "boolean", "description": about} }
func moment(about string) form {
	f := text(about)
	f["format"] = "date-time"
	return f
}

// with returns an object with more members.
func (f form) with(members ...member) form {
	more := object("", members...)
	joined := form{}
	for k, v := range f {
		joined[k] = v
	}
	properties := map[string]any{}
	for _, from := range []form{f, more} {
		for k, v := range from["properties"].(map[string]any) {
			properties[k] = v
		}
	}
	joined["properties"] = properties
	joined["required"] = append(append([]any{}, f["required"].([]any)...), more["required"].([]any)...)
	return joined
}

// stored returns the form of an object in a file. It allows the member "lockkeeper", and null for
// a list, because an empty list may be stored as null.
func (f form) stored() form {
	return orNull(f.with(may("lockkeeper", described("object", "Who wrote the file, when and after which calls, with a hash of the rest.")))).(form)
}

// orNull returns a part of a schema in which every list may be null.
func orNull(part any) any {
	switch p := part.(type) {
	case form:
		return form(orNull(map[string]any(p)).(map[string]any))
	case map[string]any:
		copied := map[string]any{}
		for k, v := range p {
			copied[k] = orNull(v)
		}
		if copied["type"] == "array" && copied["minItems"] == nil {
			copied["type"] = []any{"array", "null"}
		}
		return copied
	}
	return part
}
