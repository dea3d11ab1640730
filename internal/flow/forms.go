package flow

// ScreenFile is the name of a screen's document for Check and in the published schemas. In the
// folder of the screen the file is named AnalysisFile, like that of a controller.
const ScreenFile = "screen/" + AnalysisFile

// manifestFile is the name of a screen manifest in the published schemas.
const manifestFile = "screens.json"

const (
	idForm     = `^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`
	sumForm    = `^[0-9a-f]{64}$`
	targetsDoc = "Exact paths of the files that will be changed or made, relative to the root. Never a directory."
)

func filePath(about string) form { return words(about) }

func targets(about string) form {
	return some(about, filePath("Path of one file, relative to the root."))
}

func level(about string) form { return oneOf(about, High, Medium, Low) }

// analysis returns the form of an analysis. Stored topics have a slug, topics in an answer do
// not.
func analysis(topic form) form {
	return object("What a controller is for and how it works today.",
		must("purpose", words("What the controller is for, in a few sentences.")),
		must("behaviour", words("What it does today: actions, rules, side effects, what it guards and what it leaves open.")),
		must("screens", list("The screens that it serves.", object("",
			must("name", words("What people call the screen.")),
			must("action", words("The action that serves it."))))),
		must("relations", list("Other controllers that it relates to.", object("",
			must("controller", words("Name of the other controller, such as blog/comments.")),
			must("how", words("How they relate."))))),
		must("files", list("What the controller is made of and depends on.", filePath("Path relative to the root."))),
		must("research_topics", list("Questions whose answers from outside of this codebase would help to improve it.", topic)))
}

func topic() form {
	return object("", must("prompt", words("The complete question: its reader sees nothing else.")))
}

func possible() form {
	return object("", must("description", words("One concrete improvement, short and specific.")))
}

func ready() form {
	return object("",
		must("id", words("The id of the possible item.")),
		must("description", words("One concrete improvement, short and specific.")),
		must("impact", level("How much better it makes things.")),
		must("effort", level("How much work it is.")),
		must("rationale", words("Why it is worth it, with what the code does today.")))
}

func dropped() form {
	return object("", must("id", words("The id of the item.")), must("reason", words("Why it goes no further.")))
}

func synthesis() form {
	return object("The possible items, held against the code.",
		must("items", list("Those that are worth a person's decision.", ready())),
		must("dropped", list("Those that are done already or do not apply.", dropped())))
}

// batch returns the form of a batch in an agent's answer.
func batch() form {
	return object("",
		must("id", words("A short name of the batch, for \"after\".")),
		must("title", words("What the batch does, in a few words.")),
		must("items", some("Ids of the items that it does.", words("Id of an item."))),
		must("write_targets", targets(targetsDoc)),
		must("reads", list("What it depends on without changing it: files or directories.", filePath("Path relative to the root."))),
		must("effort", level("How much work the whole batch is.")),
		must("after", list("Ids of the batches whose changes it needs.", words("Id of a batch."))))
}

func verdict() form {
	return object("What the modified code is like beside the original.",
		must("verdict", oneOf("Whether the change may land.", "pass", "fail")),
		must("report", words("What changed, and whether it does what was asked and nothing else.")),
		must("issues", list("What is wrong, one by one. Empty if nothing is.", words(""))))
}

func screenDoc(finding form) form {
	return object("What was found on a screen.",
		must("screen", words("Name of the screen.")),
		must("findings", list("What should be improved, one by one.", finding)),
		must("write_targets", list(targetsDoc, filePath("Path of one file, relative to the root."))))
}

// answers returns the forms of agents' answers by name. Every member is required, because some
// programs do not support optional members.
func answers() map[string]form {
	return map[string]form{
		"analysis":  analysis(topic()),
		"extract":   object("What could be improved.", must("items", list("Every possible item once.", possible()))),
		"synthesis": synthesis(),
		"batches":   object("A plan.", must("batches", list("The batches, in the order in which they should be done.", batch()))),
		"summary":   object("What was done.", must("summary", words("What was changed and why, and what was left undone."))),
		"verdict":   verdict(),
		"screen":    screenDoc(words("One finding: what, where, why it matters and what to do.")),
	}
}

func changed() form {
	version := matching("\"nothing\", or kind, permissions and SHA-256 of the content.", `^(nothing|(file|dir) [0-7]{4} [0-9a-f]{64})$`)
	return list("Changed files. What they held and hold is kept under its hash.", object("",
		must("path", filePath("Path relative to the root.")), must("old", version), must("new", version)))
}

func gaps() form {
	return list("Changes that the grant did not cover; they were removed.", object("",
		must("path", text("Path relative to the root.")),
		must("reason", text("Why it was removed.")),
		must("phase", text("In which phase it was made.")),
		must("planned_by", text("The step that should have declared it.")),
		may("rescue", text("Where the change is kept.")),
		must("at", moment("When.")),
		may("answer", text("What a person made of it: dismissed, or the batch that follows it up.")),
		may("by", text("Who."))))
}

func rechecks() form {
	return list("Times at which it was checked again because a dependency had changed.", object("",
		must("moved", list("What had changed.", text("Path relative to the root."))), must("at", moment("When."))))
}

func approval(about string) form {
	return object(about, must("by", words("Who.")), must("at", moment("When.")))
}

func checked(about string) form {
	return object(about,
		may("state", oneOf("How it ended.", CheckPassed, CheckFailed, CheckSkipped)),
		must("passed", yesNo("Whether it ran and all went well in the end.")),
		may("skipped", text("Why there was nothing to run.")),
		must("runs", list("Every run of every command.", object("",
			must("command", words("The command.")),
			must("attempt", whole("How many fixes came before.")),
			must("exit", whole("Its exit status.")),
			must("took", whole("Nanoseconds.")),
			must("output", text("Where what it said is kept, from the root.")),
			may("last", text("The end of what it said."))))),
		must("fix_attempts", whole("How often an agent was asked to fix it.")),
		may("asked", list("What a reviewer wanted changed.", text(""))),
		may("summary", text("The summary of the last agent that changed it.")),
		may("rechecks", rechecks()),
		must("files", changed()),
		must("gaps", gaps()))
}

// prior returns the form of an earlier decision on the same or a similar item.
func prior() form {
	return object("What was decided before.",
		must("decision", oneOf("The decision.", Defer, Reject)),
		must("description", words("The item that it was made for.")),
		may("similar", yesNo("That one is alike, and not the same.")),
		must("at", moment("When.")),
		may("notes", text("What the person noted.")))
}

// decided returns the form of a decided item. Ratings are optional, because a person may add an
// item without them.
func decided() form {
	rated := func(about string) form { return oneOf(about, High, Medium, Low, "") }
	return object("",
		must("id", words("Its id in this unit.")),
		must("description", words("One concrete improvement.")),
		may("impact", rated("How much better it makes things.")),
		may("effort", rated("How much work it is.")),
		may("rationale", text("Why it is worth it.")),
		must("decision", oneOf("The decision.", Todo, Defer, Reject)),
		must("by", words("Who decided.")),
		must("at", moment("When.")),
		may("notes", text("What the person noted.")),
		may("added", yesNo("A person thought of it.")))
}

// documents returns the forms of files by name.
func documents() map[string]form {
	id := must("id", words("Its id in this unit."))
	batchID := must("id", matching("Its id in this plan.", idForm))
	anything := form{"type": []any{"string", "object"}}
	set := map[string]form{
		AnalysisFile:   analysis(topic().with(may("slug", matching("Names the file of its answer.", idForm)))),
		ExtractFile:    object("What could be improved.", must("items", list("Every possible item once.", possible().with(id)))),
		SynthesizeFile: synthesis(),
		AuditFile: object("The ready items as earlier decisions leave them.",
			must("items", list("Those that a person decides on.", ready().with(may("prior", prior())))),
			must("dropped", list("Those that were rejected before.", dropped()))),
		DecisionsFile: object("What people decided.",
			must("items", list("Every item with its decision.", decided()))),
		BatchesFile: object("The batches of a unit.",
			must("batches", list("In the order in which they are done.", storedBatch().with(batchID))),
			may("approved", approval("Who agreed to the plan. Nothing is applied before."))),
		ApplyFile: object("What an agent made of a batch.",
			must("batch_sha256", matching("SHA-256 of the definition it was made from.", sumForm)),
			must("summary", text("What it says it did.")),
			must("files", changed()),
			must("gaps", gaps())),
		VerificationFile: verdict().with(must("files", changed())),
		ReviewFile: object("What a person says of a diff before it lands.",
			must("state", oneOf("Where the review stands.", "wanted", "approved", "returned")),
			must("files", changed()),
			may("comments", list("What the person wants changed.", text(""))),
			may("by", text("Who.")),
			must("at", moment("When."))),
		LandedFile: object("How a batch reached the shared tree.",
			must("landings", list("Numbers of its landings.", whole(""))),
			must("grant_id", text("The grant it landed under.")),
			must("fence", whole("The fence of the grant.")),
			may("commit", text("The commit of git.")),
			must("files", changed()),
			may("rechecks", rechecks()),
			must("at", moment("When.")),
			may("undone", approval("Who undid it."))),
		ScreenFile: screenDoc(anything),
	}
	for _, p := range checkPhases() {
		set[p.Output] = checked("How the " + p.Checks + " of a batch went.")
	}
	for file, f := range set {
		set[file] = f.stored()
	}
	set[manifestFile] = manifest()
	return set
}

// storedBatch returns the form of a batch of any flow. A merge has no items, and a task has a
// prompt.
func storedBatch() form {
	return object("",
		must("title", text("What the batch does, in a few words.")),
		must("items", list("Ids of what it does.", words("Id of an item."))),
		must("write_targets", targets(targetsDoc)),
		may("reads", list("What it depends on without changing it.", filePath("Path relative to the root."))),
		may("effort", level("How much work the whole batch is.")),
		may("after", list("Ids of the batches whose changes it needs.", words("Id of a batch."))),
		may("prompt", text("Of a task: what a person wants done.")),
		may("tests", list("Of a task: its own commands.", words("A command."))),
		may("agent", text("Of a task: who does it.")))
}

// manifest returns the form of a screen manifest.
func manifest() form {
	entry := object("One screen.",
		must("name", words("What people call the screen.")),
		must("module", text("The module it belongs to; empty: none.")),
		must("controller", words("The controller that serves it.")),
		must("primary_action", words("The action that shows it.")),
		must("secondary_actions", list("Other actions that belong to it.", words("An action."))),
		must("reads_from", list("Files and directories that it depends on beyond its controller, views and models.", filePath("Path relative to the root."))))
	return object("The screens of a codebase.", must("screens", some("Every screen once.", entry)))
}
