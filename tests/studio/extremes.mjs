// What must not break the studio, against the server of `server.rs`: `node extremes.mjs SERVER FOLDER NPM CHROMIUM SCREENSHOTS`.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { rmSync } from "node:fs";
import { createServer } from "node:net";
import { hands, openBrowser } from "./page.mjs";

const [server, folder, npm, executablePath, shots] = process.argv.slice(2);
const token = "0123456789abcdef-check";
rmSync(`${folder}/store.db`, { force: true });

/** A port that was free a moment ago. */
const port = await new Promise((resolve) => {
  const probe = createServer().listen(0, "127.0.0.1", () => { const { port: free } = probe.address(); probe.close(() => resolve(free)); });
});

async function start() {
  const child = spawn(server, [`${port}`, token, `${folder}/store.db`], { stdio: ["ignore", "ignore", "pipe"] });
  process.once("exit", () => child.kill("SIGKILL"));
  await new Promise((resolve, reject) => {
    child.stderr.once("data", resolve);
    child.once("exit", (code) => reject(new Error(`the server ended with ${code}`)));
  });
  return child;
}

const end = (child) => new Promise((resolve) => { child.once("exit", resolve); child.kill("SIGKILL"); });

let running = await start();
const url = `http://127.0.0.1:${port}/#token=${token}`;
const { browser, open, faults } = await openBrowser(npm, executablePath);
const page = await open(url);
const { button, isTooWide, say, shows, view } = hands(page);
const found = {};

/** Measures the longest time between two frames while something is done. */
async function longestFrame(work) {
  await page.evaluate(() => {
    window.longest = 0;
    let last = performance.now();
    const frame = (now) => { window.longest = Math.max(window.longest, now - last); last = now; window.frame = requestAnimationFrame(frame); };
    window.frame = requestAnimationFrame(frame);
  });
  const began = performance.now();
  await work();
  const ms = Math.round(performance.now() - began);
  const frame = Math.round(await page.evaluate(() => { cancelAnimationFrame(window.frame); return window.longest; }));
  return { ms, frame };
}
const fluent = (name, { ms, frame }) => {
  found[name] = `${ms} ms, longest frame ${frame} ms`;
  assert.ok(frame < 3_000, `${name}: a frame took ${frame} ms`);
};
const runEnds = () => page.waitForFunction(() => document.querySelector(".log > .end"), null, { timeout: 120_000 });
const anew = () => page.locator(".run-head").getByRole("button", { name: "New conversation" }).click();

// 500 calls in one turn: fluent, also while one types, and when the page is opened anew; the timeline has each of them.
await view("Run");
fluent("500 calls", await longestFrame(async () => {
  await say("calls");
  await page.getByRole("article").first().waitFor();
  await page.getByRole("textbox", { name: "Message", exact: true }).pressSequentially("typed meanwhile");
  await runEnds();
}));
assert.equal(await page.getByRole("textbox", { name: "Message", exact: true }).inputValue(), "typed meanwhile");
assert.equal(await page.getByRole("article").count(), 500);
fluent("scrolling 500 calls", await longestFrame(async () => {
  for (let at = 0; at < 30; at += 1) await page.mouse.wheel(0, at % 2 ? -4_000 : 5_000);
}));
fluent("500 calls, opened again", await longestFrame(async () => {
  await view("Tools");
  await view("Run");
  await page.waitForFunction(() => document.querySelectorAll(".call").length === 500);
}));
fluent("500 calls on the timeline", await longestFrame(async () => {
  await view("Timeline");
  await page.waitForFunction(() => document.querySelectorAll(".lane.tool").length === 500);
}));
assert.ok(await page.evaluate(() => document.querySelectorAll(".lane").length) <= 502);

// A model that streams 100,000 deltas.
await view("Run");
await anew();
fluent("100,000 deltas", await longestFrame(async () => {
  await say("deltas");
  await runEnds();
}));
assert.ok(await page.evaluate(() => document.querySelector(".log > .text:not(.user)").textContent.length) > 99_000);

// A result of 10 MB: cut, and whole on demand.
await anew();
await say("large");
await runEnds();
assert.ok(await page.evaluate(() => document.querySelector(".call pre").textContent.length) < 10_000);
fluent("10 MB, whole", await longestFrame(async () => {
  await button("Show the whole result").click();
  await page.waitForFunction(() => document.querySelector(".call pre").textContent.length > 10_000_000);
}));
await view("Tools");
await page.getByRole("link", { name: /^large/ }).click();
await button("Call").click();
await page.getByText("completed").waitFor();

// A tool that is a union as a whole.
await page.getByRole("link", { name: /^notes/ }).click();
await page.getByRole("combobox", { name: "arguments: alternative" }).selectOption({ label: "remove: Removes a note." });
await page.getByLabel("id", { exact: true }).fill("7");
assert.deepEqual(JSON.parse(await page.getByRole("textbox", { name: "Arguments" }).inputValue()), { action: "remove", id: 7 });
await button("Call").click();
await shows("removed 7");

// A message to an active run waits for its next request; the run is cancelled.
await view("Run");
await anew();
await say("sleep");
await page.getByText("running").waitFor();
await page.getByRole("textbox", { name: "Message", exact: true }).fill("be quick");
await button("Steer").click();
await page.locator(".queued").getByText("be quick").waitFor();
await button("Cancel").click();
await shows(/^aborted: cancelled in the studio/);

// Markup, control characters and marks of direction in every field are texts.
await view("Run");
await anew();
await say("hostile <b>bold</b> \u202e");
await runEnds();
await shows("alert(2)</script>⟦U+202E⟧");
await view("Timeline");
await page.getByRole("button", { name: /Turn 1/ }).click();
await page.getByRole("region", { name: "Details" }).getByText("alert(2)</script>").first().waitFor();
await view("Sessions");
await page.getByRole("textbox", { name: "Name of a session" }).fill("<img src=x>\u202e100%_");
await page.keyboard.press("Enter");
await page.getByRole("textbox", { name: "Message", exact: true }).waitFor();
await say("hello");
await runEnds();
await view("Sessions");
await page.getByRole("searchbox").fill("<IMG src=x>");
await page.locator(".view-sessions").getByText("<img src=x>⟦U+202E⟧100%_").nth(1).waitFor();
await page.screenshot({ path: `${shots}/hostile.png` });
for (const name of ["Tools", "Run", "Timeline", "Sessions", "Window"]) {
  await view(name);
  await page.getByRole("main").locator("> *").first().waitFor();
  assert.equal(await page.locator("main img, main script, main b, main iframe").count(), 0, name);
}

// A sub-agent whose provider is busy twice: attempts in its lane, and the response as it was received.
await view("Run");
await anew();
await say("remote");
await runEnds();
await view("Timeline");
await page.getByText("3 requests").waitFor();
assert.equal(await page.locator(".lane.inner .bar.failed").count(), 2);
await shows("2 retried");
await page.getByRole("group", { name: "Run of remote" }).getByRole("button", { name: /^Turn 1/ }).click();
const attempts = page.getByRole("list", { name: "Attempts" });
await attempts.getByText("status 503").nth(1).waitFor();
assert.equal(await attempts.getByRole("listitem").count(), 3);
await page.getByRole("region", { name: "Details" }).getByText("Response, as it was received").click();
await page.getByText("data: [DONE]").waitFor();
assert.equal(await page.locator("main img, main script").count(), 0);
await page.screenshot({ path: `${shots}/attempts.png` });

// No width makes a page scroll sideways.
for (const name of ["Tools", "Run", "Timeline", "Sessions", "Window"]) {
  await view(name);
  await page.getByRole("main").locator("> *").first().waitFor();
  for (const width of [360, 480, 768, 1024, 1280, 1600]) {
    await page.setViewportSize({ width, height: 900 });
    assert.equal(await isTooWide(), false, `${name} at ${width}`);
  }
}

// Two pages on one run: the decision of one is seen by the other, and an answer that comes too late is told.
await view("Run");
await anew();
await say("change");
await shows("waits for your decision");
const second = await open(url);
const other = hands(second);
await other.view("Run");
await second.getByText("waits for your decision").waitFor();
await page.keyboard.press("Escape");
await page.keyboard.press("a");
await shows("x is changed (7 digits)");
await second.getByText("x is changed (7 digits)").first().waitFor();
assert.equal(await second.getByRole("button", { name: "Allow", exact: true }).count(), 0);
assert.equal(await page.getByText("hunter2").count() + await second.getByText("hunter2").count(), 0);
await second.close();

// A store that hangs: the page says so, and goes on.
await view("Sessions");
await page.getByRole("searchbox").fill("hang");
await shows("did not answer in time");
await page.screenshot({ path: `${shots}/hanging-store.png` });
await page.getByRole("searchbox").fill("");
await page.locator(".view-sessions .row.session").nth(3).waitFor();
await page.getByRole("textbox", { name: "Name of a session" }).fill("hang/1");
await page.keyboard.press("Enter");
await shows("This cannot be shown");
await button("Try again").waitFor();

// A process that hangs in the middle of a run: the page says so, keeps what was typed, and continues with it.
await view("Run");
await anew();
await say("sleep");
await page.getByText("running").waitFor();
const typed = page.getByRole("textbox", { name: "Message", exact: true });
await typed.fill("typed meanwhile");
running.kill("SIGSTOP");
await shows("The studio does not answer.");
await page.screenshot({ path: `${shots}/hangs.png` });
running.kill("SIGCONT");
await page.waitForFunction(() => document.getElementById("notice").hidden, null, { timeout: 30_000 });
assert.equal(await typed.inputValue(), "typed meanwhile");
await button("Steer").click();
await page.locator(".queued").getByText("typed meanwhile").waitFor();
await button("Cancel").click();
await shows(/^aborted: cancelled in the studio/);
// In a view that follows nothing, too.
await view("Window");
await shows("What fills the next request");
running.kill("SIGSTOP");
await shows("The studio does not answer.");
running.kill("SIGCONT");
await page.waitForFunction(() => document.getElementById("notice").hidden, null, { timeout: 30_000 });

// A server that goes away in the middle of a run, and comes back.
await view("Run");
await anew();
await say("sleep");
await page.getByText("running").waitFor();
const session = decodeURIComponent(new URL(page.url()).hash.replace("#run/", ""));
await end(running);
await shows("The studio does not answer.");
await page.screenshot({ path: `${shots}/away.png` });
running = await start();
await page.waitForFunction(() => document.getElementById("notice").hidden, null, { timeout: 30_000 });
await view("Sessions");
await page.getByRole("searchbox").fill(session);
await page.locator(".view-sessions .row.session").first().click();
await page.getByRole("log").getByText("sleep", { exact: true }).first().waitFor();
await say("hello again");
await shows(/I heard \d+ messages/);

// A program that started again with another token: the page asks for its address.
await page.evaluate(() => sessionStorage.setItem("token", "another"));
await view("Window");
await page.getByRole("textbox", { name: "Address of the studio" }).fill(url);
await button("Use it").click();
await shows("What fills the next request");
assert.equal(await page.getByRole("alert").isHidden(), true);

await browser.close();
await end(running);
assert.deepEqual(faults, []);
for (const [name, figures] of Object.entries(found)) console.log(`studio: ${name}: ${figures}`);
console.log("studio: hostile texts, two pages, a store that hangs, and a server that hangs or goes away");
