// Lockkeeper: refuses writes to files that others hold. `lockkeeper init opencode` writes this file,
// and renews it if it is run again. docs/hooks.md says what it does.
import { spawn } from "node:child_process"

const before = BEFORE
const otherwise = OTHERWISE
const idle = IDLE

// Another copy of this file may be loaded, as for a repository inside of this one. The first that
// sees a call handles it.
const handled = (globalThis[Symbol.for("lockkeeper")] ??= new Set())
const first = (key) => !handled.has(key) && handled.add(key)

// run calls the hook as other agents do: with a shell, and with the call on standard input.
const run = (command, call, dir) =>
  new Promise((done) => {
    let out = "", err = ""
    const child = spawn("/bin/sh", ["-c", command], { cwd: dir, stdio: ["pipe", "pipe", "pipe"] })
    const late = setTimeout(() => child.kill("SIGKILL"), LIMIT)
    const end = (code) => (clearTimeout(late), done({ code, out, err }))
    child.on("error", (e) => ((err += e.message), end(-1)))
    child.on("close", end)
    child.stdin.on("error", () => {})
    child.stdout.on("data", (text) => (out += text))
    child.stderr.on("data", (text) => (err += text))
    child.stdin.end(JSON.stringify(call))
  })

export const Lockkeeper = async ({ client, directory }) => {
  const parents = new Map() // sessions of subagents, by id
  const known = new Set() // sessions that have called the hook
  const calls = new Map() // tool calls whose end was not reported
  const notices = new Map() // texts for the model of a session that it was not shown yet
  const open = new Set() // calls of the hook in progress

  // The process reports before a person has asked anything. The first session takes this one over.
  let waiting = "start-" + process.pid

  const take = (id) => {
    const texts = notices.get(id) ?? []
    notices.delete(id)
    return texts
  }

  const parentOf = async (id) => {
    if (!parents.has(id)) {
      const { data } = await client.session.get({ path: { id } })
      parents.set(id, data?.parentID)
    }
    return parents.get(id)
  }

  // asks calls the hook for a session and returns its answer. It keeps the texts for the model.
  const asks = async (event, id, more = {}) => {
    let root = id
    for (let up; (up = await parentOf(root)); ) root = up
    const agent = root === id ? {} : { agent_id: id, agent_type: "subagent" }
    if (waiting) {
      const call = { session_id: waiting, cwd: directory, hook_event_name: "SessionEnd", reason: "clear" }
      waiting = ""
      await run(otherwise, call, directory)
    }
    known.add(root)
    const call = { session_id: root, ...agent, cwd: directory, hook_event_name: event, ...more }
    const asking = run(event === "PreToolUse" ? before : otherwise, call, directory)
    open.add(asking)
    const said = await asking
    open.delete(asking)
    let answer = {}
    try {
      answer = JSON.parse(said.out || "{}")
    } catch {
      said.code = -1
    }
    const { permissionDecision, permissionDecisionReason, additionalContext } = answer.hookSpecificOutput ?? {}
    if (answer.systemMessage) client.tui.showToast({ body: { message: answer.systemMessage, variant: "warning", duration: 15000 } }).catch(() => {})
    if (permissionDecision === "deny") throw new Error([permissionDecisionReason, ...take(id)].join("\n\n"))
    if (event === "PreToolUse" && said.code !== 0) throw new Error(said.err.trim() || "REFUSED: the hook of Lockkeeper did not answer, so this call was not checked")
    const text = additionalContext ?? (said.code === 0 ? "" : said.err.trim())
    if (text) notices.set(id, [...(notices.get(id) ?? []), text])
  }

  // A session that ends or that cannot be told must not stop opencode.
  const tells = (...call) => asks(...call).catch(() => {})

  const ended = async (id, callID, failed, answer) => {
    const call = calls.get(callID)
    if (!calls.delete(callID)) return
    handled.delete("before " + callID)
    await tells(failed ? "PostToolUseFailure" : "PostToolUse", id, { ...call, tool_response: answer })
  }

  if (first("load " + directory)) await run(otherwise, { session_id: waiting, cwd: directory, hook_event_name: "SessionStart" }, directory)
  else waiting = ""

  return {
    "chat.message": async ({ sessionID, messageID }, { parts }) => {
      if (!first("prompt " + (messageID ?? parts[0]?.messageID))) return
      const prompt = parts.filter((part) => part.type === "text" && !part.synthetic).map((part) => part.text).join("\n")
      if (!(await parentOf(sessionID))) await tells("UserPromptSubmit", sessionID, { prompt })
    },
    "tool.execute.before": async ({ tool, sessionID, callID }, { args }) => {
      if (idle.includes(tool) || !first("before " + callID)) return
      const call = { tool_name: tool, tool_use_id: callID, tool_input: args }
      await asks("PreToolUse", sessionID, call)
      calls.set(callID, call)
    },
    "tool.execute.after": async ({ sessionID, callID }, answer) => {
      await ended(sessionID, callID, false, { output: String(answer.output ?? ""), truncated: answer.metadata?.truncated === true })
      if (!notices.has(sessionID)) return
      if (typeof answer.output === "string") answer.output += "\n\n" + take(sessionID).join("\n")
      else if (Array.isArray(answer.content)) answer.content.push({ type: "text", text: take(sessionID).join("\n") }) // of an MCP tool
    },
    event: async ({ event: { type, properties } }) => {
      if (type === "session.created" || type === "session.updated") parents.set(properties.info.id, properties.info.parentID)
      if (type === "message.part.updated" && properties.part.state?.status === "error") await ended(properties.part.sessionID, properties.part.callID, true)
      if (type === "session.deleted" && known.delete(properties.info.id)) await tells("SessionEnd", properties.info.id)
      if (type === "session.idle" && known.size > 0) await tells((await parentOf(properties.sessionID)) ? "SubagentStop" : "Stop", properties.sessionID)
    },
    dispose: async () => {
      while (open.size > 0) await Promise.allSettled(open)
      for (const id of known) await tells("SessionEnd", id)
    },
  }
}
