package flow

// ScreenFile is the name of a screen's document for Check and in the published schemas. In the
// folder of the screen the file is named AnalysisFile, like that of a controller.
const ScreenFile = "screen/" + AnalysisFile

// manifestFile is the name of a screen manifest in the published schemas.
const manifestFile = "screens.json"

const (
	idForm     = `^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`
	sumForm    = `^[0-9a-f]{64}$`
	targetsDoc = "Exact paths of the files that the batch changes or creates, relative to the root. Never a directory."
)

func filePath(about string) form { return words(about) }

func targets(about string) form {
	return some(about, filePath("Path of one file, relative to the root."))
}

func level(about string) form { return oneOf(about, High, Medium, Low) }

// analysis returns the form of an analysis. Stored topics have a slug, topics in an answer do
// not.
func analysis(topic form) form {
	return object("The purpose of a controller and how it works today.",
		must("purpose", words("The purpose of the controller, in a few sentences.")),
		must("behaviour", words("What it does today: actions, rules, side effects, and which inputs and permissions it does and does not check.")),
		must("screens", list("The screens that it serves.", object("",
			must("name", words("The name that people use for the screen.")),
			must("action", words("The action that serves it."))))),
		must("relations", list("Other controllers that it relates to.", object("",
			must("controller", words("Name of the other controller, such as blog/comments.")),
			must("how", words("How the two controllers relate."))))),
		must("files", list("The files of the controller and the files that it depends on.", filePath("Path relative to the root."))),
		must("research_topics", list("Research questions about things outside of this codebase. The answers should help to improve the controller.", topic)))
}

func topic() form {
	return object("", must("prompt", words("The complete question. It is sent without any other context.")))
}

func possible() form {
	return object("", must("description", words("One concrete improvement, short and specific.")))
}

func ready() form {
	return object("",
		must("id", words("The id of the possible item.")),
		must("description", words("One concrete improvement, short and specific.")),
		must("impact", level("How much the improvement helps.")),
		must("effort", level("How much work the improvement takes.")),
		must("rationale", words("Why the improvement is worth the effort, with reference to what the code does today.")))
}

func dropped() form {
	return object("", must("id", words("The id of the item.")), must("reason", words("Why the item was dropped.")))
}

func synthesis() form {
	return object("The possible items after a comparison with the code.",
		must("items", list("The items that a person should decide on.", ready())),
		must("dropped", list("The items that are already done or do not apply.", dropped())))
}

// batch returns the form of a batch in an agent's answer.
func batch() form {
	return object("",
		must("id", words("A short name of the batch. Other batches name it in \"after\".")),
		must("title", words("What the batch does, in a few words.")),
		must("items", some("Ids of the items that the batch implements.", words("Id of an item."))),
		must("write_targets", targets(targetsDoc)),
		must("reads", list("Files and directories that the batch depends on but does not change.", filePath("Path relative to the root."))),
		must("effort", level("How much work the whole batch takes.")),
		must("after", list("Ids of the batches whose changes this batch needs.", words("Id of a batch."))))
}

func verdict() form {
	return object("The result of comparing the changed code with the original.",
		must("verdict", oneOf("Whether the change may land.", "pass", "fail")),
		must("report", words("What changed, and whether the change does what was requested and nothing else.")),
		must("issues", list("The problems, one per entry. Empty if there are none.", words(""))))
}

func screenDoc(finding form) form {
	return object("The findings for one screen.",
		must("screen", words("Name of the screen.")),
		must("findings", list("The possible improvements, one per entry.", finding)),
		must("write_targets", list(targetsDoc, filePath("Path of one file, relative to the root."))))
}

// answers returns the forms of agents' answers by name. Every member is required, because some
// programs do not support optional members.
func answers() map[string]form {
	return map[string]form{
		"analysis":  analysis(topic()),
		"extract":   object("The possible improvements.", must("items", list("Every possible item, once.", possible()))),
		"synthesis": synthesis(),
		"batches":   object("The planned batches.", must("batches", list("The batches, in the order in which they should be done.", batch()))),
		"summary":   object("The agent's report on its change.", must("summary", words("What was changed and why, and what was left undone."))),
		"verdict":   verdict(),
		"screen":    screenDoc(words("One finding: what, where, why it matters and what to do.")),
	}
}

func changed() form {
	version := matching("\"nothing\" if the file does not exist; otherwise its kind, permissions and the SHA-256 of its content.", `^(nothing|(file|dir) [0-7]{4} [0-9a-f]{64})$`)
	return list("Changed files. Both versions of a file are stored under their hashes.", object("",
		must("path", filePath("Path relative to the root.")), must("old", version), must("new", version)))
}

func gaps() form {
	return list("Changes to files that the grant did not cover. They were reverted.", object("",
		must("path", text("Path relative to the root.")),
		must("reason", text("Why the change was reverted.")),
		must("phase", text("The phase that made the change.")),
		must("planned_by", text("The step that should have declared the file as a write target.")),
		may("rescue", text("Id of the saved change, for lockkeeper rescue.")),
		must("at", moment("When the change was reverted.")),
		may("answer", text("A person's answer: dismissed, or the batch that makes the change later.")),
		may("by", text("Who answered."))))
}

func rechecks() form {
	return list("Times at which the batch was tested again because its dependencies changed.", object("",
		must("moved", list("The changed dependencies.", text("Path relative to the root."))), must("at", moment("When the batch was tested again."))))
}

func approval(about string) form {
	return object(about, must("by", words("The person's name.")), must("at", moment("When the person did so.")))
}

func checked(about string) form {
	return object(about,
		may("state", oneOf("The result.", CheckPassed, CheckFailed, CheckSkipped)),
		must("passed", yesNo("Whether the state is \"passed\".")),
		may("skipped", text("Why no command ran.")),
		must("runs", list("Every run of every command.", object("",
			must("command", words("The command.")),
			must("attempt", whole("The number of earlier fixes.")),
			must("exit", whole("Its exit status.")),
			must("took", whole("Duration in nanoseconds.")),
			must("output", text("Path of the file with its output, relative to the root.")),
			may("last", text("The end of its output."))))),
		must("fix_attempts", whole("How often an agent was asked to fix the failure.")),
		may("asked", list("The changes that a reviewer requested.", text(""))),
		may("summary", text("The summary of the last agent that changed the batch.")),
		may("rechecks", rechecks()),
		must("files", changed()),
		must("gaps", gaps()))
}

// prior returns the form of an earlier decision on the same or a similar item.
func prior() form {
	return object("An earlier decision on the same or a similar item.",
		must("decision", oneOf("The decision.", Defer, Reject)),
		must("description", words("Description of the item that was decided.")),
		may("similar", yesNo("Whether that item is only similar, not the same.")),
		must("at", moment("When it was made.")),
		may("notes", text("The person's notes.")))
}

// decided returns the form of a decided item. Ratings are optional, because a person may add an
// item without them.
func decided() form {
	rated := func(about string) form { return oneOf(about, High, Medium, Low, "") }
	return object("",
		must("id", words("Id of the item in this unit.")),
		must("description", words("One concrete improvement.")),
		may("impact", rated("How much the improvement helps.")),
		may("effort", rated("How much work the improvement takes.")),
		may("rationale", text("Why the improvement is worth the effort.")),
		must("decision", oneOf("The decision.", Todo, Defer, Reject)),
		must("by", words("Who decided.")),
		must("at", moment("When it was decided.")),
		may("notes", text("The person's notes.")),
		may("added", yesNo("Whether a person added the item.")))
}

// documents returns the forms of files by name.
func documents() map[string]form {
	id := must("id", words("Id of the item in this unit."))
	batchID := must("id", matching("Id of the batch in this plan.", idForm))
	anything := form{"type": []any{"string", "object"}}
	set := map[string]form{
		AnalysisFile:   analysis(topic().with(may("slug", matching("Name of the file with the answer.", idForm)))),
		ExtractFile:    object("The possible improvements.", must("items", list("Every possible item, once.", possible().with(id)))),
		SynthesizeFile: synthesis(),
		AuditFile: object("The ready items after earlier decisions were applied.",
			must("items", list("The items that a person decides on.", ready().with(may("prior", prior())))),
			must("dropped", list("The items that a person rejected in an earlier run.", dropped()))),
		DecisionsFile: object("The decisions of people on the items of a unit.",
			must("items", list("Every item with its decision.", decided()))),
		BatchesFile: object("The batches of a unit.",
			must("batches", list("The batches, in the order in which they are done.", storedBatch().with(batchID))),
			may("approved", approval("Who approved the plan, and when. No batch starts before this."))),
		ApplyFile: object("The change that an agent made for a batch.",
			must("batch_sha256", matching("SHA-256 of the batch definition that the agent was given.", sumForm)),
			must("summary", text("The agent's own summary.")),
			must("files", changed()),
			must("gaps", gaps())),
		VerificationFile: verdict().with(must("files", changed())),
		ReviewFile: object("A person's review of a diff before it lands.",
			must("state", oneOf("The state of the review.", "wanted", "approved", "returned")),
			must("files", changed()),
			may("comments", list("The changes that the person requested.", text(""))),
			may("by", text("Who reviewed the diff.")),
			must("at", moment("When the state last changed."))),
		LandedFile: object("The landings of a batch.",
			must("landings", list("Numbers of its landings.", whole(""))),
			must("grant_id", text("Id of the grant that it landed under.")),
			must("fence", whole("The fencing number of the grant.")),
			may("commit", text("The git commit, if one was made.")),
			must("files", changed()),
			may("rechecks", rechecks()),
			must("at", moment("When the batch landed.")),
			may("undone", approval("Who undid the landings, and when."))),
		ScreenFile: screenDoc(anything),
	}
	for _, p := range checkPhases() {
		set[p.Output] = checked("The results of the " + p.Checks + " of a batch.")
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
		must("items", list("Ids of the items that the batch implements.", words("Id of an item."))),
		must("write_targets", targets(targetsDoc)),
		may("reads", list("Files and directories that the batch depends on but does not change.", filePath("Path relative to the root."))),
		may("effort", level("How much work the whole batch takes.")),
		may("after", list("Ids of the batches whose changes this batch needs.", words("Id of a batch."))),
		may("prompt", text("For a task: the instructions for the agent.")),
		may("tests", list("For a task: its own test commands.", words("A command."))),
		may("agent", text("For a task: the agent that does it.")))
}

// manifest returns the form of a screen manifest.
func manifest() form {
	entry := object("One screen.",
		must("name", words("The name that people use for the screen.")),
		must("module", text("The module that the screen belongs to. Empty if it belongs to none.")),
		must("controller", words("The controller that serves it.")),
		must("primary_action", words("The action that shows it.")),
		must("secondary_actions", list("Other actions that belong to it.", words("An action."))),
		must("reads_from", list("Files and directories that it depends on beyond its controller, views and models.", filePath("Path relative to the root."))))
	return object("The screens of a codebase.", must("screens", some("Every screen, once.", entry)))
}
