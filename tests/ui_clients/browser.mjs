// Pages in headless Chromium against our server: node browser.mjs URL MODULES CHROMIUM PAGE EXAMPLE.
// PAGE is where the page with `useChat` is written, which the server sends; EXAMPLE is the address of the example's page.
// A person's view: what is pressed is found by its role, and the console stays empty. Only the server is reached.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const [url, modules, executablePath, outfile, example] = process.argv.slice(2);
const require = createRequire(`${modules}/package.json`);
const { chromium } = require("playwright-core");
await require("esbuild").build({
  entryPoints: [fileURLToPath(new URL("page.jsx", import.meta.url))], outfile, bundle: true, format: "esm", jsx: "automatic", logLevel: "warning",
  nodePaths: [`${modules}/node_modules`], define: { "process.env.NODE_ENV": '"production"' },
});

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
const noise = [];
let chats = 0;

async function open(address, chat) {
  const context = await browser.newContext();
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  page.on("console", message => noise.push(message.text()));
  page.on("pageerror", error => noise.push(error.message));
  page.on("dialog", dialog => { noise.push(`dialog: ${dialog.message()}`); return dialog.dismiss(); });
  await context.route(to => ![url, example].includes(to.origin), route => { noise.push(route.request().url()); return route.abort(); });
  await page.goto(chat ? `${address}/?chat=${encodeURIComponent(chat)}` : address);
  return page;
}
const newChat = () => `page ${process.pid} ${++chats}/é`;
const chatPage = (chat = newChat()) => open(url, chat);
const say = async (page, text) => {
  await page.getByLabel("Message").fill(text);
  await page.getByLabel("Message").press("Enter");
};
const shows = (page, text) => page.getByText(text).first().waitFor();
const button = (page, name) => page.getByRole("button", { name });
const ready = page => page.getByLabel("Status").getByText("ready", { exact: true }).waitFor();
/** The last message of the assistant, as text. */
const answer = page => page.getByLabel("assistant").last().innerText();
/** A page that comes back first shows the history, then the run again if it has just ended. */
const becomes = async (page, text) => {
  for (let tries = 0; await answer(page) !== text; tries++) {
    assert.ok(tries < 100, `${await answer(page)}\n\nis not\n\n${text}`);
    await page.waitForTimeout(50);
  }
};
const requests = page => {
  const sent = [];
  page.on("request", request => { if (request.method() === "POST" && request.url() === `${url}/api/chat`) sent.push(request); });
  return sent;
};

const cases = {
  async "a call"() {
    const page = await chatPage();
    await say(page, "call");
    await shows(page, "done: call");
    await ready(page);
    assert.match(await answer(page), /Adding\.[^]*add \{"a":"1","b":2\} output-available "3"[^]*done: call/);
  },
  async "an approval: allowed, denied, and after the page was loaded again"() {
    for (const [name, reloads, end] of [["Allow", false, '"5 to Ann"'], ["Deny", false, "output-denied"], ["Allow", true, '"5 to Ann"'], ["Deny", true, "output-denied"]]) {
      const page = await chatPage();
      const sent = requests(page);
      await say(page, "approve");
      await button(page, name).waitFor();
      await ready(page);
      if (reloads) await page.reload();
      await button(page, name).click();
      await shows(page, "done: approve");
      await ready(page);
      await page.waitForTimeout(200);
      assert.equal(sent.length, 2, "a question and an answer");
      assert.ok((await answer(page)).includes(end), await answer(page));
      assert.equal(await page.getByLabel("assistant").count(), 1, "the message continues");
      // The history is what the stream was.
      const before = await answer(page);
      await page.reload();
      await shows(page, "done: approve");
      await becomes(page, before);
    }
  },
  async "two approvals"() {
    const page = await chatPage();
    await say(page, "two");
    await button(page, "Allow").nth(1).waitFor();
    await button(page, "Allow").first().click();
    await button(page, "Deny").last().click();
    await shows(page, "done: two");
    assert.match(await answer(page), /"5 to Ann"[^]*output-denied/);
  },
  async "a tool of the browser"() {
    const page = await chatPage();
    const sent = requests(page);
    await say(page, "browser");
    await shows(page, "done: browser");
    await ready(page);
    assert.equal(sent.length, 2);
    assert.match(await answer(page), /scroll \{"to":5\} output-available \{"y":5\}/);
  },
  async "reload during a run, another tab, stop"() {
    const chat = newChat();
    const page = await chatPage(chat);
    await say(page, "wait");
    await shows(page, "input-available");
    await page.reload();
    await shows(page, "input-available");
    const other = await chatPage(chat);
    await shows(other, "input-available");
    await button(other, "Stop").click();
    for (const one of [page, other]) {
      await ready(one);
      assert.match(await answer(one), /^Waiting\.\s+wait \{\} output-/);
    }
    assert.equal(await answer(page), await answer(other));
    await say(page, "call");
    await shows(page, "done: call");
    await say(page, "after the stop");
    await shows(page, "done: after the stop");
  },
  async "leave during a run, and come back when it is over"() {
    const chat = newChat();
    const page = await chatPage(chat);
    await say(page, "slow");
    await shows(page, "one");
    await page.close();
    await new Promise(go => setTimeout(go, 1500));
    const again = await chatPage(chat);
    await shows(again, "three");
    await ready(again);
    assert.match(await answer(again), /^one\s+nap[^]*two\s+nap[^]*three$/);
    assert.equal(await again.getByLabel("assistant").count(), 1);
  },
  async "an error"() {
    const page = await chatPage();
    await say(page, "error");
    await page.getByRole("alert").getByText(/The model is busy\. Reference: /).waitFor();
    assert.ok(!(await page.content()).includes("sk-1"));
  },
  async "hostile texts, secrets, large results"() {
    const page = await chatPage();
    await say(page, "hostile");
    await shows(page, "done: hostile");
    assert.equal(await page.locator("img, script:not([src])").count(), 0);
    await say(page, "secret");
    await shows(page, "done: secret");
    const text = await page.content();
    assert.ok(!text.includes("hunter2") && text.includes("[secret]"));
  },
  async "the page of the example"() {
    const page = await open(example);
    await button(page, "Send").click();
    await button(page, "Allow").click();
    await shows(page, "a table for 2 in Rome");
    await shows(page, "that is all I can do");
  },
};

let failed = 0;
for (const [name, check] of Object.entries(cases)) {
  noise.length = 0;
  try {
    await check();
    assert.deepEqual(noise, [], "the page is not silent");
    console.log(`ok - in a browser: ${name}`);
  } catch (error) {
    failed++;
    const shown = await Promise.all(browser.contexts().flatMap(context => context.pages()).map(page => page.locator("body").innerText()));
    console.log(`not ok - in a browser: ${name}\n${error.stack}\n${[...shown, ...noise].join("\n--\n")}`);
  }
  await Promise.all(browser.contexts().map(context => context.close()));
}
await browser.close();
console.log(`${Object.keys(cases).length - failed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
