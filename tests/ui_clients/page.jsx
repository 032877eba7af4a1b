// A page with `useChat`, as an application has it. `browser.mjs` bundles it, and uses it as a person would.
import { useChat } from "@ai-sdk/react";
import {
  DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses, lastAssistantMessageIsCompleteWithToolCalls,
} from "ai";
import { useState } from "react";
import { createRoot } from "react-dom/client";

const id = new URLSearchParams(location.search).get("chat");
const address = `/api/chat/${encodeURIComponent(id)}`;
const transport = new DefaultChatTransport({ api: "/api/chat" });
const sendAutomaticallyWhen = state =>
  lastAssistantMessageIsCompleteWithApprovalResponses(state) || lastAssistantMessageIsCompleteWithToolCalls(state);

function Call({ part, decide }) {
  const asks = part.state === "approval-requested" && !part.approval.isAutomatic;
  return <p className="tool">
    {part.type.slice(5)} {JSON.stringify(part.input)} {part.state} {JSON.stringify(part.output) ?? part.errorText}
    {asks && [true, false].map(approved =>
      <button key={approved} onClick={() => decide({ id: part.approval.id, approved })}>{approved ? "Allow" : "Deny"}</button>)}
  </p>;
}

function Page({ messages: initial }) {
  const [text, setText] = useState("");
  const chat = useChat({
    id, messages: initial, resume: true, transport, sendAutomaticallyWhen,
    onToolCall: ({ toolCall: { toolName: tool, toolCallId, input } }) => {
      if (tool === "scroll") chat.addToolOutput({ tool, toolCallId, output: { y: input.to } });
    },
  });
  const send = event => {
    event.preventDefault();
    chat.sendMessage({ text });
    setText("");
  };
  return <main>
    <output aria-label="Status">{chat.status}</output>
    {chat.error && <p role="alert">{chat.error.message}</p>}
    {chat.messages.map(message => <article key={message.id} aria-label={message.role}>
      {message.parts.map((part, at) =>
        part.type === "text" ? <p key={at}>{part.text}</p>
          : part.type.startsWith("tool-") ? <Call key={part.toolCallId} part={part} decide={chat.addToolApprovalResponse} /> : null)}
    </article>)}
    <form onSubmit={send}><input aria-label="Message" value={text} onChange={event => setText(event.target.value)} /></form>
    <button onClick={() => fetch(`${address}/cancel`, { method: "POST" })}>Stop</button>
  </main>;
}

fetch(address).then(response => response.json())
  .then(messages => createRoot(document.getElementById("page")).render(<Page messages={messages} />));
