// What the checks of the studio share: a browser whose pages must stay free of errors, dialogs and requests to others.
import { createRequire } from "node:module";

export const WIDTHS = [360, 900, 1600];

export async function openBrowser(npm, executablePath) {
  const { chromium } = createRequire(`${npm}/`)("playwright-core");
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  const faults = [];
  const open = async (url) => {
    const page = await browser.newPage({ reducedMotion: "reduce", viewport: { width: 1600, height: 1000 } });
    page.setDefaultTimeout(20_000);
    page.on("pageerror", (error) => faults.push(error.stack));
    // A rejected request and a server that is away are a part of the checks; a violation of the policy is not.
    page.on("console", (message) => { if (message.type() === "error" && !message.text().includes("Failed to load resource")) faults.push(message.text()); });
    page.on("dialog", (dialog) => { faults.push("a dialog"); dialog.dismiss(); });
    page.on("request", (request) => { if (!request.url().startsWith(new URL(url).origin)) faults.push(request.url()); });
    await page.goto(url);
    await page.getByRole("navigation", { name: "Views" }).waitFor();
    return page;
  };
  return { browser, open, faults };
}

/** What a person does on a page, by names and roles. */
export function hands(page) {
  const button = (name) => page.getByRole("button", { name, exact: true });
  return {
    button,
    shows: (text) => page.getByText(text).filter({ visible: true }).first().waitFor(),
    view: (name) => page.getByRole("navigation", { name: "Views" }).getByRole("link", { name }).click(),
    /** Sends a message when no run is active. */
    say: async (text) => {
      await button("Send").waitFor();
      const message = page.getByRole("textbox", { name: "Message", exact: true });
      await message.fill(text);
      await message.press("Control+Enter");
    },
    isTooWide: () => page.evaluate(() => document.documentElement.scrollWidth > innerWidth),
  };
}
