// The clients of npm against our server: node check.mjs URL. Each case fails by an exception; nothing may be written to the console.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [url, modules] = process.argv.slice(2);
const require = createRequire(`${modules}/package.json`);
const load = name => import(pathToFileURL(require.resolve(name)).href);
const {
  AbstractChat, DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls, readUIMessageStream, validateUIMessages,
} = await load("ai");
const agUi = { "1.0.0": await load("@ag-ui/client"), "0.0.59": await load("ag-ui-client-0") };

const noise = [];
console.warn = console.error = (...words) => noise.push(words.map(String).join(" "));
const within = (promise, what, ms = 20_000) => Promise.race([
  promise, new Promise((_, fail) => setTimeout(() => fail(new Error(`${what} takes too long`)), ms).unref()),
]);
let chats = 0;
const newChat = () => `chat ${process.pid} ${++chats}/é`;
const said = text => ({ id: crypto.randomUUID(), role: "user", parts: [{ type: "text", text }] });
const transport = new DefaultChatTransport({ api: `${url}/api/chat` });
const texts = message => message.parts.filter(part => part.type === "text").map(part => part.text).join("");
const tools = message => message.parts.filter(part => part.type.startsWith("tool-"));

async function message(stream) {
  let last;
  for await (const one of readUIMessageStream({ stream, onError: error => { throw error; } })) last = one;
  return last;
}

async function ask(text, chatId = newChat()) {
  const stream = await transport.sendMessages({ chatId, messages: [said(text)], trigger: "submit-message" });
  return message(stream);
}

/** The chat of the hooks, without a framework. */
class Chat extends AbstractChat {
  requests = 0;
  constructor(options) {
    const state = {
      status: "ready", error: undefined, messages: [], snapshot: structuredClone,
      pushMessage(one) { this.messages = [...this.messages, one]; },
      popMessage() { this.messages = this.messages.slice(0, -1); },
      replaceMessage(at, one) { this.messages = this.messages.with(at, structuredClone(one)); },
    };
    const counted = new DefaultChatTransport({
      api: `${url}/api/chat`, fetch: (...args) => (this.requests++, fetch(...args)),
    });
    super({ id: newChat(), transport: counted, state, ...options });
  }
  async settled(is, what) {
    for (const end = Date.now() + 15_000; Date.now() < end; await new Promise(go => setTimeout(go, 20))) {
      if (this.status === "ready" && is(this)) {
        const before = this.requests;
        await new Promise(go => setTimeout(go, 150));
        if (this.requests === before && this.status === "ready") return;
      }
      if (this.status === "error") throw this.error;
    }
    throw new Error(`${what}: ${this.status} ${JSON.stringify(this.messages, null, 1)}`);
  }
}

const cases = {
  async "a call"() {
    const answer = await ask("call");
    assert.equal(texts(answer), "Adding. done: call");
    const [call] = tools(answer);
    assert.deepEqual([call.type, call.state, call.output, call.input], ["tool-add", "output-available", "3", { a: "1", b: 2 }]);
    assert.equal(answer.parts.find(part => part.type === "reasoning").text, "I add.");
    assert.ok(answer.parts.some(part => part.type === "data-agent-coercions"));
    await validateUIMessages({ messages: [answer] });
  },
  async "refused arguments and unknown tools"() {
    const calls = tools(await ask("refused"));
    assert.deepEqual(calls.map(call => call.state), ["output-error", "output-error"]);
  },
  async "secrets"() {
    const answer = JSON.stringify(await ask("secret"));
    assert.ok(!answer.includes("hunter2") && answer.includes("[secret]"));
  },
  async "progress, large results, repeated ids, hostile texts"() {
    assert.equal(tools(await ask("progress"))[0].output, "both");
    assert.equal(tools(await ask("big"))[0].output.length, 10 << 20);
    const calls = tools(await ask("same ids"));
    assert.equal(new Set(calls.map(call => call.toolCallId)).size, 2);
    assert.ok(calls.every(call => call.state === "output-available"));
    assert.ok(texts(await ask("hostile")).startsWith("</script><img src=x onerror=alert(1)>\r\n"));
  },
  async "an error"() {
    const stream = await transport.sendMessages({ chatId: newChat(), messages: [said("error")], trigger: "submit-message" });
    const errors = [];
    for await (const _ of readUIMessageStream({ stream, onError: error => errors.push(error.message) }));
    assert.equal(errors.length, 1);
    assert.match(errors[0], /The model is busy\. Reference: /);
    const bad = transport.sendMessages({ chatId: newChat(), messages: [], trigger: "submit-message" });
    await assert.rejects(bad, /empty/);
  },
  async "an approval with a call beside it: two requests"() {
    for (const approved of [true, false]) {
      const chat = new Chat({ sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses });
      await within(chat.sendMessage(said("approve")), "the question");
      const part = tools(chat.lastMessage).find(part => part.state === "approval-requested");
      assert.equal(part.type, "tool-send");
      await chat.addToolApprovalResponse({ id: part.approval.id, approved, reason: approved ? undefined : "too much" });
      await chat.settled(({ lastMessage }) => texts(lastMessage).includes("done"), "the rest");
      assert.equal(chat.requests, 2);
      assert.equal(chat.messages.length, 2, "the message continues");
      const [add, send] = tools(chat.lastMessage);
      assert.deepEqual([add.state, send.state], ["output-available", approved ? "output-available" : "output-denied"]);
      await validateUIMessages({ messages: chat.messages });
    }
  },
  async "questions of a tool, with an answer that does not fit"() {
    const chat = new Chat({ sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses });
    const asked = () => tools(chat.lastMessage).find(part => part.state === "approval-requested")?.approval;
    const answer = (approval, input, approved = true) =>
      chat.addToolApprovalResponse({ id: approval.id, approved, options: { body: { inputs: { [approval.descriptor.questions[0].id]: input } } } });
    await within(chat.sendMessage(said("question")), "the question");
    const first = asked();
    assert.equal(first.descriptor.questions[0].message, "Which seat?");
    assert.equal(first.descriptor.questions[0].schema.properties.coach.maximum, 20);
    await answer(first, { coach: 70, window: true });
    for (const end = Date.now() + 15_000; chat.status !== "error" && Date.now() < end;) await new Promise(go => setTimeout(go, 20));
    assert.match(JSON.parse(chat.error.message).error.report, /coach/);
    // The approval is answered already: the page sends the message again, with another input.
    await chat.sendMessage(undefined, { body: { inputs: { [first.descriptor.questions[0].id]: { coach: "7", window: true } } } });
    await chat.settled(() => asked() && asked().id !== first.id, "the second question");
    assert.equal(asked().descriptor.questions[0].message, "Are you sure?");
    await answer(asked(), true);
    await chat.settled(({ lastMessage }) => texts(lastMessage).includes("done"), "the rest");
    assert.equal(tools(chat.lastMessage)[1].output, "coach 7, true, true");
    assert.deepEqual([chat.requests, chat.messages.length], [4, 2]);
    await validateUIMessages({ messages: chat.messages });
    const declined = new Chat({ sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses });
    await within(declined.sendMessage(said("question")), "the question");
    const { id } = tools(declined.lastMessage)[1].approval;
    await declined.addToolApprovalResponse({ id, approved: false });
    await declined.settled(({ lastMessage }) => texts(lastMessage).includes("done"), "the rest");
    assert.equal(tools(declined.lastMessage)[1].state, "output-error");
    await validateUIMessages({ messages: declined.messages });
  },
  async "a sub-agent, and one that waits"() {
    const answer = await ask("sub");
    const data = (message, kind) => message.parts.filter(part => part.type === `data-agent-${kind}`).map(part => part.data);
    assert.deepEqual(data(answer, "run").map(run => [run.tool, run.state]), [["ask", "completed"]]);
    assert.deepEqual(data(answer, "run-text").map(one => one.text), ["I add.", "Adding. ", "done: call"]);
    assert.deepEqual(data(answer, "run-call").map(call => [call.tool, call.state, call.output]), [["add", "completed", "3"]]);
    assert.equal(tools(answer)[0].output, "done: call");
    await validateUIMessages({ messages: [answer] });
    const chat = new Chat({ sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses });
    await within(chat.sendMessage(said("sub approve")), "the question");
    assert.equal(data(chat.lastMessage, "run")[0].state, "suspended");
    await chat.addToolApprovalResponse({ id: tools(chat.lastMessage).find(part => part.type === "tool-send").approval.id, approved: true });
    await chat.settled(({ lastMessage }) => texts(lastMessage).includes("done: sub approve"), "the rest");
    assert.deepEqual([chat.requests, chat.messages.length, data(chat.lastMessage, "run")[0].state], [2, 2, "completed"]);
    assert.equal(tools(chat.lastMessage).find(part => part.type === "tool-send").output, "5 to Ann");
    await validateUIMessages({ messages: chat.messages });
  },
  async "two approvals"() {
    const chat = new Chat({ sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses });
    await within(chat.sendMessage(said("two")), "the questions");
    for (const part of tools(chat.lastMessage)) await chat.addToolApprovalResponse({ id: part.approval.id, approved: true });
    await chat.settled(({ lastMessage }) => texts(lastMessage).includes("done"), "the rest");
    assert.equal(chat.requests, 2);
  },
  async "a tool of the browser"() {
    const chat = new Chat({
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls,
      onToolCall: ({ toolCall }) => {
        if (toolCall.toolName === "scroll") chat.addToolOutput({ tool: "scroll", toolCallId: toolCall.toolCallId, output: { y: toolCall.input.to } });
      },
    });
    await within(chat.sendMessage(said("browser")), "the call");
    await chat.settled(({ lastMessage }) => texts(lastMessage).includes("done"), "the rest");
    assert.equal(chat.requests, 2);
    assert.equal(chat.messages.length, 2);
  },
  async "leave, come back, stop"() {
    const chatId = newChat();
    const gone = new AbortController();
    const stream = await transport.sendMessages({ chatId, messages: [said("wait")], trigger: "submit-message", abortSignal: gone.signal });
    const reader = stream.getReader();
    while ((await reader.read()).value?.type !== "tool-input-available");
    gone.abort();
    const tabs = await Promise.all([1, 2].map(() => transport.reconnectToStream({ chatId })));
    const both = Promise.all(tabs.map(message));
    await new Promise(go => setTimeout(go, 100));
    await fetch(`${url}/api/chat/${encodeURIComponent(chatId)}/cancel`, { method: "POST" });
    const [one, other] = await within(both, "the end");
    assert.deepEqual(one, other);
    assert.match(tools(one)[0].state, /^output-/);
    const history = await (await fetch(`${url}/api/chat/${encodeURIComponent(chatId)}`)).json();
    await validateUIMessages({ messages: history });
    assert.equal(history[1].id, one.id);
    assert.equal(await transport.reconnectToStream({ chatId: newChat() }), null);
  },
};

for (const [version, { HttpAgent }] of Object.entries(agUi)) {
  const agent = (prompt, more) => new HttpAgent({
    url: `${url}/api/ag-ui`, threadId: newChat(), initialMessages: [{ id: crypto.randomUUID(), role: "user", content: prompt }], ...more,
  });
  const run = async (agent, input) => {
    const seen = { errors: [], finished: 0, custom: [] };
    const result = await within(agent.runAgent(input, {
      onRunErrorEvent: ({ event }) => { seen.errors.push(event.message); },
      onRunFinishedEvent: ({ event }) => { seen.finished++; seen.outcome = event.outcome; },
      onCustomEvent: ({ event }) => { seen.custom.push(event.name); },
      onSubagentStartedEvent: ({ event }) => { seen.custom.push(`started ${event.name}`); },
      onSubagentFinishedEvent: ({ event }) => { seen.custom.push(event.outcome.type); },
    }), "the run");
    return { ...seen, messages: result.newMessages };
  };
  Object.assign(cases, {
    async [`AG-UI ${version}: runs`]() {
      const { messages, finished, custom } = await run(agent("call"));
      assert.equal(finished, 1);
      assert.deepEqual(messages.filter(one => one.role !== "reasoning").map(one => one.role), ["assistant", "tool", "assistant"]);
      assert.equal(messages.find(one => one.role === "tool").content, "3");
      assert.equal(messages.at(-1).content, "done: call");
      assert.ok(custom.includes("agent.coercions"));
      for (const prompt of ["refused", "secret", "progress", "big", "same ids", "hostile"]) {
        const { finished, messages } = await run(agent(prompt));
        assert.equal(finished, 1, prompt);
        assert.ok(!JSON.stringify(messages).includes("hunter2"));
      }
    },
    async [`AG-UI ${version}: an error`]() {
      const { errors, finished } = await run(agent("error"));
      assert.deepEqual([errors.length, finished], [1, 0]);
      assert.match(errors[0], /The model is busy/);
      await assert.rejects(run(new HttpAgent({ url: `${url}/api/ag-ui`, threadId: newChat(), initialMessages: [] })), /empty|400/);
      noise.length = 0;
    },
    async [`AG-UI ${version}: an interrupt`]() {
      for (const payload of [{ approved: true }, { approved: true, editedArgs: { to: "Ann", amount: 4 } }, { approved: false }]) {
        const client = agent("approve");
        const first = await run(client);
        assert.equal(first.outcome.type, "interrupt");
        const [interrupt] = first.outcome.interrupts;
        const resume = [{ interruptId: interrupt.id, status: "resolved", payload }];
        const second = await run(client, { resume });
        assert.equal(second.finished, 1);
        const results = client.messages.filter(one => one.role === "tool").map(one => one.content);
        assert.ok(results.includes(payload.approved ? `${payload.editedArgs ? 4 : 5} to Ann` : "denied"), results);
      }
    },
    async [`AG-UI ${version}: questions of a tool`]() {
      const client = agent("question");
      const [first] = (await run(client)).outcome.interrupts;
      assert.deepEqual([first.reason, first.message, first.responseSchema.required], ["input_required", "Which seat?", ["coach", "window"]]);
      const resume = (interrupt, more) => run(client, { resume: [{ interruptId: interrupt.id, ...more }] });
      await assert.rejects(resume(first, { status: "resolved", payload: { coach: 70 } }), /coach/);
      noise.length = 0;
      const [second] = (await resume(first, { status: "resolved", payload: { coach: 7, window: false } })).outcome.interrupts;
      assert.equal(second.message, "Are you sure?");
      const last = await resume(second, { status: "cancelled" });
      assert.equal(last.finished, 1);
      assert.ok(client.messages.some(one => one.role === "tool" && one.content === "the person dismissed the question"));
    },
    async [`AG-UI ${version}: a sub-agent, and one that waits`]() {
      const isCurrent = version === "1.0.0";
      const { messages, finished, custom } = await run(agent("sub"));
      assert.equal(finished, 1);
      assert.deepEqual(custom.filter(name => /^started|success|^agent\.run$/.test(name)), isCurrent ? ["started ask", "success"] : ["agent.run", "agent.run"]);
      assert.equal(messages.filter(one => one.subagentRunId).length > 0, isCurrent);
      assert.equal(messages.at(-1).content, "done: sub");
      const client = agent("sub approve");
      const first = await run(client);
      const [interrupt] = first.outcome.interrupts;
      assert.equal(Boolean(interrupt.subagentRunId), isCurrent);
      if (isCurrent) assert.ok(first.custom.includes("suspended"), first.custom);
      const second = await run(client, { resume: [{ interruptId: interrupt.id, status: "resolved", payload: { approved: true } }] });
      assert.equal(second.finished, 1);
      assert.ok(client.messages.some(one => one.role === "tool" && one.content === "5 to Ann"), JSON.stringify(client.messages));
      assert.equal(client.messages.at(-1).content, "done: sub approve");
      // The next message of the same thread: the client sends back what it has.
      client.addMessage({ id: crypto.randomUUID(), role: "user", content: "call" });
      assert.equal((await run(client)).messages.at(-1).content, "done: call");
    },
    async [`AG-UI ${version}: a tool of the browser`]() {
      const client = agent("browser");
      const first = await run(client);
      assert.equal(first.outcome?.type ?? "success", "success");
      const call = client.messages.flatMap(one => one.toolCalls ?? [])[0];
      client.addMessage({ id: crypto.randomUUID(), role: "tool", toolCallId: call.id, content: "scrolled" });
      const second = await run(client);
      assert.equal(second.messages.at(-1).content, "done: browser");
    },
    async [`AG-UI ${version}: stop, and a second reader`]() {
      const client = agent("wait");
      const running = run(client);
      await new Promise(go => setTimeout(go, 300));
      const second = new HttpAgent({ url: `${url}/api/ag-ui/${encodeURIComponent(client.threadId)}`, threadId: client.threadId });
      const following = run(second);
      await new Promise(go => setTimeout(go, 200));
      await fetch(`${url}/api/chat/${encodeURIComponent(client.threadId)}/cancel`, { method: "POST" });
      const [{ finished }, followed] = await within(Promise.all([running, following]), "the end");
      assert.deepEqual([finished, followed.finished], [1, 1]);
      assert.deepEqual(second.messages.filter(one => one.role === "tool").length, 1);
    },
  });
}

let failed = 0;
for (const [name, check] of Object.entries(cases)) {
  noise.length = 0;
  try {
    await within(check(), name, 60_000);
    assert.deepEqual(noise, [], "the client warns");
    console.log(`ok - ${name}`);
  } catch (error) {
    failed++;
    console.log(`not ok - ${name}\n${error.stack}`);
  }
}
console.log(`${Object.keys(cases).length - failed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
