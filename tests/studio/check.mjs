// Uses the studio of the example as a person would, by roles and keys: `node check.mjs URL NPM CHROMIUM SCREENSHOTS`.
import assert from "node:assert/strict";
import { WIDTHS, hands, openBrowser } from "./page.mjs";

const [url, npm, executablePath, shots] = process.argv.slice(2);
const { browser, open, faults } = await openBrowser(npm, executablePath);
const page = await open(url);
const { button, isTooWide, say, shows, view } = hands(page);
let pictures = 0;

/** Takes a picture of a view at each width, in both themes. */
async function pictureOf(name, isOfEnd = false) {
  for (const colorScheme of ["light", "dark"]) {
    for (const width of WIDTHS) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: width < 500 ? 800 : 1000 });
      await page.evaluate((end) => scrollTo(0, end ? document.documentElement.scrollHeight : 0), isOfEnd);
      assert.equal(await isTooWide(), false, `${name} at ${width}: no sideways scrolling`);
      await page.screenshot({ path: `${shots}/${name}-${colorScheme}-${width}.png` });
      pictures += 1;
    }
  }
}

// Tools: the form and the text are one thing.
assert.equal(new URL(page.url()).hash, "#tools", "the token does not stay in the address");
const args = page.getByRole("textbox", { name: "Arguments" });
const text = async () => JSON.parse(await args.inputValue());
await args.waitFor();
const field = (name) => page.getByRole("group", { name: "Form" }).getByLabel(name, { exact: true });
await field("guests").fill("3");
assert.equal((await text()).guests, 3);
await button("Set nights").click();
assert.equal((await text()).nights, 1, "the default");
assert.equal(await field("nights").evaluate((one) => one === document.activeElement), true, "the focus goes to what was added");
await button("Set view").click();
await field("view").selectOption("garden");
assert.deepEqual(await text(), { guests: 3, nights: 1, view: "garden" });
await button("Remove nights").click();
await args.fill('{"guests": 12345678901234567890, "note": {"a": [1]}}');
assert.equal(await field("guests").inputValue(), "12345678901234567890", "a number stays as it was typed");
await page.getByRole("textbox", { name: "note as JSON" }).fill('{"a": 2}');
assert.match(await args.inputValue(), /12345678901234567890[^]*"a": 2/);
await shows("unknown parameter");

// Faults are marked at their places, also of keys, and of a text that is no JSON.
const marks = () => page.locator("mark").allInnerTexts();
const marked = async (written, expected) => {
  await args.fill(written);
  await args.press("Control+Enter");
  await page.getByRole("group", { name: "Check" }).getByText("Refused").waitFor();
  await page.waitForFunction((all) => JSON.stringify([...document.querySelectorAll("mark")].map((one) => one.textContent)) === all, JSON.stringify(expected));
};
await marked('{"guest": 2, "view": "Sea"}', ["{", '"guest"', '"Sea"']);
await page.getByRole("list", { name: "Faults" }).getByRole("button", { name: /enum/ }).click();
assert.equal(await args.evaluate((area) => area.value.slice(area.selectionStart, area.selectionEnd)), '"Sea"', "a fault leads to its place");
await button("Use the corrected call").click();
assert.deepEqual(await text(), { guests: 2, view: "sea" });
await page.getByRole("group", { name: "Check" }).getByText("Accepted").waitFor();
assert.deepEqual(await marks(), []);
await marked('{"guests": 2, "guests": 2}', ['"guests"', '"guests"']);
await shows("The key `guests` is repeated.");
await marked('{"guests": 2,, "view": 1}', [","]);
await shows("The text is not JSON: expected a key in quotes.");
await marked('{"guests": [', ["["]);

// Coercions, and a result.
await args.fill('{"guests": "2"}');
await button("Call").click();
await page.getByRole("list", { name: "Coercions" }).getByText("text_to_integer").waitFor();
await shows("Room 12");
await page.getByRole("radio", { name: /anthropic-strict/ }).check();
await shows("/properties/guests: `minimum`");

// Nested objects, arrays and unions; a tool that changes something is asked about first, and hostile texts are texts.
await page.keyboard.press("Escape");
await page.keyboard.press("/");
assert.equal(await page.getByRole("searchbox", { name: "Search tools" }).evaluate((one) => one === document.activeElement), true);
await page.keyboard.type("book");
await page.getByRole("link", { name: /book_room/ }).press("Enter");
await page.getByRole("heading", { name: "book_room", exact: true }).waitFor();
const hostile = "<img src=x onerror=alert(1)>\u202e\u0007";
await field("guest name").fill(hostile);
await button("Set children").click();
await button("Add an item").click();
await field("guest children 0").fill("7");
await page.getByRole("combobox", { name: "payment: alternative" }).selectOption({ label: "card: By a card." });
await field("payment last_digits").fill("4242");
assert.match(await args.inputValue(), /onerror=alert\(1\)>\\u202e\\u0007"/, "marks are escapes in the text");
assert.deepEqual(await text(), { room: 1, guest: { name: hostile, children: [7] }, payment: { method: "card", last_digits: "4242" } });
await page.getByRole("group", { name: "Check" }).getByText("Accepted").waitFor();
await pictureOf("tools");
await page.setViewportSize({ width: 1600, height: 1000 });
await button("Call").click();
await page.getByRole("group", { name: "Confirmation" }).waitFor();
assert.equal(await page.getByText("is booked for").count(), 0, "it did not run yet");
await button("Call it").press("Enter");
await shows("Room 1 is booked for <img src=x onerror=alert(1)>⟦U+202E⟧");
assert.equal(await page.locator("main img").count(), 0);

// Refused arguments, as a picture of what no other such page shows.
await page.getByRole("searchbox", { name: "Search tools" }).fill("");
await args.fill('{\n  "room": 99,\n  "gest": {"name": "Ann"},\n  "guest": {"name": "", "children": [7, "x"]},\n  "payment": {"method": "card", "last_digits": "42"}\n}');
await page.getByRole("list", { name: "Faults" }).getByText("/payment/last_digits").waitFor();
await pictureOf("refused");
await page.setViewportSize({ width: 1600, height: 1000 });

// Secrets are dots, and a secret in a confirmed call is shown nowhere.
await page.getByRole("link", { name: /unlock_door/ }).click();
await field("door").fill("Garage");
await field("code").fill("4711-0815");
assert.equal(await field("code").getAttribute("type"), "password");

// Run, by keys alone: calls side by side, one refused.
await page.keyboard.press("Escape");
await page.keyboard.press("2");
await say("Please find a room.");
await shows("Room 12 is free for two");
const order = (await page.getByRole("log").innerText()).split("\n");
assert.ok(order.indexOf("I look at rooms for two and for four, and at the weather.") < order.findIndex((line) => line.startsWith("find_rooms")), "a text stands before the call that follows it");
assert.equal(await page.getByRole("article", { name: "Call of find_rooms" }).count(), 3);
await page.getByRole("list", { name: "Faults" }).getByText("did you mean \"guests\"?").waitFor();
await pictureOf("run");
await page.setViewportSize({ width: 1600, height: 1000 });

// A decision in place, by a key, on two pages.
await say("Now book it.");
await shows("waits for your decision");
const second = await open(url);
await hands(second).view("Run");
await second.getByText("waits for your decision").waitFor();
await pictureOf("decision", true);
await page.setViewportSize({ width: 1600, height: 1000 });
const changed = page.getByRole("textbox", { name: "Changed arguments" });
await page.keyboard.press("Escape");
await page.keyboard.press("e");
assert.equal(await changed.evaluate((one) => one === document.activeElement), true);
await changed.fill((await changed.inputValue()).replace("12", "99"));
await button("Allow with these arguments").click();
await shows("/room: out of range");
await changed.fill((await changed.inputValue()).replace("99", "14"));
await button("Allow with these arguments").click();
await shows("Room 14 is booked for Ann");
await second.getByText("Room 14 is booked for Ann").first().waitFor();
await say("book again");
await shows("waits for your decision");
await page.keyboard.press("Escape");
await page.keyboard.press("d");
await shows("denied in the studio");

// A question of a tool is answered in its card, with what is wrong marked; another page sees it, too.
await say("reserve a table");
const question = page.getByRole("form", { name: "Question of reserve_table" });
const answerField = (name) => question.getByLabel(name, { exact: true });
await question.getByText("Which table at Sole?").waitFor();
const third = await open(url);
await hands(third).view("Run");
await third.getByRole("form", { name: "Question of reserve_table" }).waitFor();
await answerField("seats").fill("99");
await answerField("place").selectOption("terrace");
await question.getByRole("button", { name: "Set card" }).click();
await answerField("card").fill("4711-0815");
assert.equal(await answerField("card").getAttribute("type"), "password");
assert.equal(await question.getByText("As text").count(), 0, "a text would show the secret");
await pictureOf("question", true);
await page.setViewportSize({ width: 1600, height: 1000 });
await question.getByRole("button", { name: "Answer", exact: true }).click();
await question.getByRole("list", { name: "Faults" }).getByText("/seats").waitFor();
assert.equal(await question.locator(".field.invalid").getAttribute("data-path"), "/seats");
await answerField("seats").fill("4");
assert.equal(await question.locator(".field.invalid").count(), 0);
await question.getByRole("button", { name: "Answer", exact: true }).press("Enter");
await question.getByText("4 seats at Sole, Terrace: is that right?").waitFor();
assert.equal((await page.getByRole("log").innerText()).includes("4711"), false);
await question.getByText("As text").click();
await question.getByRole("textbox", { name: "Answer as JSON" }).fill('{"value": "perhaps"}');
await question.getByRole("button", { name: "Answer", exact: true }).click();
await question.getByRole("list", { name: "Faults" }).waitFor();
assert.deepEqual(await question.locator("mark").allInnerTexts(), ['"perhaps"']);
await question.getByRole("textbox", { name: "Answer as JSON" }).fill('{"value": true}');
await question.getByRole("button", { name: "Answer", exact: true }).click();
await shows("4 seats at Sole are reserved, held by a card of 9 digits.");
await third.getByText("4 seats at Sole are reserved, held by a card of 9 digits.").first().waitFor();

// A sub-agent: its run is in the card of its call, and its question there.
await say("ask the concierge for a table");
const inner = page.getByRole("group", { name: "Run of concierge" });
await inner.getByText("I ask for a table.").waitFor();
const innerQuestion = inner.getByRole("form", { name: "Question of reserve_table" });
await innerQuestion.getByText("Which table at Sole?").waitFor();
assert.equal(await page.getByRole("article", { name: "Call of concierge" }).getByRole("article", { name: "Call of reserve_table" }).count(), 1);
await pictureOf("sub-agent", true);
await page.setViewportSize({ width: 1600, height: 1000 });
await innerQuestion.getByRole("button", { name: "Decline" }).click();
await inner.getByText("the person declined to answer").waitFor();
await shows("The concierge has seen to it.");
await page.reload();
await page.getByRole("group", { name: "Run of concierge" }).getByText("the person declined to answer").waitFor();

// Its turns and calls have lanes under the lane of the call.
await view("Timeline");
const innerLanes = page.getByRole("group", { name: "Run of concierge" }).getByRole("button");
await innerLanes.nth(2).waitFor();
assert.deepEqual((await innerLanes.evaluateAll((all) => all.map((one) => one.querySelector(".label").textContent))), ["Turn 1", "reserve_table", "Turn 2"]);
await innerLanes.nth(2).press("k");
await page.keyboard.press("Enter");
await page.getByRole("region", { name: "Details" }).getByText("the person declined to answer").first().waitFor();
await innerLanes.first().click();
await page.getByRole("heading", { name: "concierge · turn 1" }).waitFor();
await page.getByRole("region", { name: "Details" }).getByText("You are the concierge of a small hotel.", { exact: true }).waitFor();
await pictureOf("sub-agent-timeline");
await page.setViewportSize({ width: 1600, height: 1000 });
await view("Run");

// A result that is delivered here, and a reply that fails.
await say("order a letter");
await page.getByRole("textbox", { name: "Result to deliver" }).fill("It is printed.");
await button("Deliver this result").press("Enter");
await shows("The letter is on its way.");
await say("stumble");
await shows(/^error: .*the demo model stumbled/);

// Timeline.
await view("Timeline");
await page.locator(".lane .failed").waitFor();
await page.getByRole("combobox", { name: "Run" }).selectOption({ label: await page.getByRole("option", { name: /find a room/ }).innerText() });
const calls = page.getByRole("button", { name: /find_rooms|forecast/ });
await page.waitForFunction(() => document.querySelectorAll(".lane.tool").length === 4);
const boxes = await calls.evaluateAll((all) => all.map((one) => one.querySelector(".bar.good, .bar.bad").getBoundingClientRect()).map(({ left, right }) => [left, right]));
assert.ok(boxes[0][0] < boxes[2][1] && boxes[2][0] < boxes[0][1], "calls that ran side by side overlap on the axis");
await page.getByRole("button", { name: /Turn 2/ }).press("Enter");
const details = page.getByRole("region", { name: "Details" });
await details.getByText("You are the desk of a small hotel.", { exact: true }).waitFor();
await details.getByText("One call was refused; once more.", { exact: true }).waitFor();
await pictureOf("timeline");
await page.setViewportSize({ width: 1600, height: 1000 });
await calls.nth(1).click();
await details.getByText("invalid_arguments").waitFor();
await details.getByRole("button", { name: "Try them under Tools" }).click();
await page.waitForFunction(() => document.querySelector("textarea[aria-label=Arguments]")?.value.includes('"guest": 4'));
await page.getByRole("group", { name: "Check" }).getByText("Refused").waitFor();

// Sessions: found by name, opened and continued.
await view("Sessions");
await page.getByRole("textbox", { name: "Name of a session" }).fill("ann/1");
await page.keyboard.press("Enter");
await page.getByRole("textbox", { name: "Message", exact: true }).waitFor();
await say("hello");
await shows("I am the demo model");
await view("Sessions");
await page.getByRole("searchbox").fill("ANN/");
await page.waitForFunction(() => document.querySelectorAll(".view-sessions .list")[1].children.length === 1);
await page.getByRole("searchbox").fill("");
await page.waitForFunction(() => document.querySelectorAll(".view-sessions .list")[1].children.length === 2);
assert.equal(await page.locator(".view-sessions .list").nth(1).getByRole("link").first().locator("code").innerText(), "ann/1", "the latest is the first");
await page.getByRole("checkbox", { name: "with those of sub-agents" }).check();
await page.waitForFunction(() => document.querySelectorAll(".view-sessions .list")[1].children.length === 3);
await page.locator(".view-sessions .list").nth(1).getByText("sub-agent", { exact: true }).waitFor();
await pictureOf("sessions");
await page.setViewportSize({ width: 1600, height: 1000 });
await page.getByRole("searchbox").fill("nobody");
await shows("Nothing found");
await page.getByRole("link", { name: /ann\/1/ }).first().click();
await shows("I am the demo model");

// Window, themes and shortcuts.
await view("Window");
await shows("tool find_rooms");
await pictureOf("window");
await page.setViewportSize({ width: 1600, height: 1000 });
const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
await page.getByRole("combobox", { name: "Theme" }).selectOption("dark");
const dark = await background();
await page.getByRole("combobox", { name: "Theme" }).selectOption("light");
assert.notEqual(await background(), dark);
await page.reload();
assert.equal(await page.getByRole("combobox", { name: "Theme" }).inputValue(), "light", "a theme is kept");
await page.keyboard.press("?");
await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
await page.screenshot({ path: `${shots}/shortcuts.png` });
await page.keyboard.press("Escape");
for (const [key, heading] of [["5", "What fills the next request"], ["4", "Sessions"]]) {
  await page.keyboard.press(key);
  await page.getByRole("heading", { name: heading, exact: true }).waitFor();
}
await page.keyboard.press("1");
await page.getByRole("link", { name: /find_rooms/ }).waitFor();
await page.keyboard.press("j");
await page.keyboard.press("j");
await page.keyboard.press("Enter");
await page.getByRole("heading", { name: "book_room", exact: true }).waitFor();
const hasRing = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle !== "none");
assert.ok(hasRing, "the focus is seen");

await browser.close();
assert.deepEqual(faults, []);
console.log(`studio: tools, runs, timeline and sessions by clicks and keys, ${pictures + 1} screenshots`);
