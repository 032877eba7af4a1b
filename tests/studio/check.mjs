// Uses the studio of the example as a person would, by roles and keys: `node check.mjs URL NPM CHROMIUM SCREENSHOTS`.
import assert from "node:assert/strict";
import { createRequire } from "node:module";

const [url, npm, executablePath, shots] = process.argv.slice(2);
const { chromium } = createRequire(`${npm}/`)("playwright-core");
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const page = await browser.newPage({ reducedMotion: "reduce" });
const faults = [];
page.on("pageerror", (error) => faults.push(error.message));
// A rejected request is a part of the check; a violation of the policy is not.
page.on("console", (message) => { if (message.type() === "error" && !message.text().includes("Failed to load resource")) faults.push(message.text()); });
page.on("dialog", (dialog) => { faults.push("a dialog"); dialog.dismiss(); });
page.on("request", (request) => { if (!request.url().startsWith(new URL(url).origin)) faults.push(request.url()); });

const button = (name) => page.getByRole("button", { name, exact: true });
const shows = (text) => page.getByText(text).first().waitFor({ timeout: 10_000 });

// Tools: a refusal with its correction, coercions, a result.
await page.goto(url);
assert.equal(new URL(page.url()).hash, "#tools", "the token does not stay in the address");
const args = page.getByRole("textbox", { name: "Arguments" });
await args.fill('{"guest": 2}');
await args.press("Control+Enter");
await shows("Refused. The model would read:");
await button("Use the corrected call").click();
assert.match(await args.inputValue(), /"guests"/);
await args.fill('{"guests": "2"}');
await button("Call").click();
await shows('/guests: "2" → 2');
await shows("Room 12 is free for 2.");
await page.getByRole("combobox", { name: "Dialect" }).selectOption({ label: "anthropic-strict" });
await shows("/properties/guests: `minimum`");

// A tool that changes something, with hostile texts: asked first, and shown as text.
await page.getByRole("button", { name: /book_room/ }).click();
await page.getByRole("heading", { name: "book_room" }).waitFor();
const hostile = "<img src=x onerror=alert(1)>\u202e\u0007";
await args.fill(JSON.stringify({ room: 3, guest: hostile }));
await button("Call").click();
await button("Call it").click();
await shows("Room 3 is booked for <img src=x onerror=alert(1)>⟦U+202E⟧");
assert.equal(await page.locator("img").count(), 0);

// Run, by keys alone: a call as a card, a decision in place, and a second page on the same run.
await page.getByRole("link", { name: "Run" }).press("Enter");
await page.getByRole("textbox", { name: "Message" }).fill("Book a room.");
await page.getByRole("textbox", { name: "Message" }).press("Control+Enter");
await shows("waits for your decision");
const order = (await page.getByRole("main").innerText()).split("\n");
assert.ok(order.indexOf("Let me look.") < order.findIndex((line) => line.startsWith("find_rooms")), "a text stands before the call that follows it");
const second = await browser.newPage();
await second.goto(url);
await second.getByRole("link", { name: "Run" }).click();
await second.getByText("waits for your decision").waitFor();
for (const colorScheme of ["light", "dark"]) {
  for (const width of [360, 900, 1600]) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 900 });
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${width}: no sideways scrolling`);
    await page.screenshot({ path: `${shots}/run-${colorScheme}-${width}.png`, fullPage: true });
  }
}
await button("Allow").press("Enter");
await shows("Room 12 is booked for Ann.");
await shows("Room 12 is booked.");
await second.getByText("Room 12 is booked for Ann.").first().waitFor();
await page.screenshot({ path: `${shots}/run-end.png`, fullPage: true });
await page.getByText("Request of turn 2").click();
await shows('"tool_choice": "Auto"');
await page.getByRole("link", { name: "Window" }).click();
await shows("tool results find_rooms");
await page.screenshot({ path: `${shots}/window.png`, fullPage: true });
await page.getByRole("link", { name: "Tools" }).click();
await args.waitFor();
await page.screenshot({ path: `${shots}/tools-dark.png`, fullPage: true });
await browser.close();
assert.deepEqual(faults, []);
console.log("studio: tools and runs by clicks and keys, 9 screenshots");
