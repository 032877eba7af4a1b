// The client of the TypeScript SDK against our server, over both of its transports: `client.mjs FOLDER SERVER`. The SDK's 1.x
// speaks the older protocol alone.
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { isDeepStrictEqual } from 'node:util';

const [folder, program] = process.argv.slice(2);
const require = createRequire(join(folder, 'package.json'));
const { Client } = require('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = require('@modelcontextprotocol/sdk/client/stdio.js');
const { StreamableHTTPClientTransport } = require('@modelcontextprotocol/sdk/client/streamableHttp.js');

const LIMIT = 60_000;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const text = (result) => result.content.map((block) => block.text ?? '').join('');

/** Everything that a host does. */
async function use(client, that) {
  const tools = Object.fromEntries((await client.listTools()).tools.map((tool) => [tool.name, tool]));
  that('the list', ['add', 'book_room', 'draw', 'find_hotels', 'state_of', 'work'], Object.keys(tools).sort());
  that('an output schema of an object', ['guests', 'hotel', 'nights'], Object.keys(tools.book_room.outputSchema?.properties ?? {}).sort());
  that('an output schema of a list', ['result'], Object.keys(tools.find_hotels.outputSchema?.properties ?? {}));

  const call = (name, args, options) => client.callTool({ name, arguments: args }, undefined, options);
  const added = await call('add', { a: '40', b: 2 });
  that('text for a number is coerced', ['42', false], [text(added), added.isError ?? false]);

  const refused = await call('book_room', { hotel: 'Lutetia', nights: 31, guests: [] });
  that('a refused call is an error result', true, refused.isError);
  const report = text(refused);
  that('the begin of the report', true, report.startsWith('Invalid arguments for `book_room`: 2 problems'), report);
  that('the whole report', true, report.includes('/nights') && report.includes('/guests'), report);

  const booked = await call('book_room', { hotel: 'Lutetia', nights: '2', guests: ['Ann', 'Bo'] });
  that('structured content of an object', { hotel: 'Lutetia', nights: 2, guests: ['Ann', 'Bo'] }, booked.structuredContent);
  const found = await call('find_hotels', {});
  that('structured content of a list', { result: [{ name: 'Lutetia', stars: 5 }, { name: 'Mistral', stars: 2 }] }, found.structuredContent);

  const [picture] = (await call('draw', {})).content;
  that('a picture', ['image', 'image/png'], [picture.type, picture.mimeType]);

  const steps = [];
  const onprogress = ({ progress, total, message }) => steps.push([progress, total, message]);
  const worked = await call('work', { label: 'whole', steps: 4 }, { onprogress });
  that('a call with progress', '4 steps', text(worked));
  that('every step of the progress', [1, 2, 3, 4].map((n) => [n, 4, `step ${n}`]), steps);

  const controller = new AbortController();
  const job = call('work', { label: 'cancelled', steps: 200 }, { signal: controller.signal }).catch((error) => error);
  const stateOf = async () => text(await call('state_of', { label: 'cancelled' }));
  let state = 'unknown';
  while (!state.startsWith('step') || state === 'step 1') {
    await sleep(50);
    state = await stateOf();
  }
  controller.abort('the user pressed stop');
  await job;
  for (let tries = 0; tries < 60 && state.startsWith('step'); tries += 1) {
    await sleep(50);
    state = await stateOf();
  }
  that('the tool hears that its call was cancelled', true, state.startsWith('cancelled at step'), state);
  that('the connection is still good', '3', text(await call('add', { a: 1, b: 2 })));
}

async function run(title, transport) {
  let [passed, failed] = [0, 0];
  const that = (name, expected, found, shown = found) => {
    if (isDeepStrictEqual(expected, found)) {
      passed += 1;
    } else {
      failed += 1;
      console.log(`FAIL ${title}: ${name}: ${JSON.stringify(shown)}`);
    }
  };
  const client = new Client({ name: 'programs', version: '1.0.0' });
  try {
    await client.connect(transport);
    const late = sleep(LIMIT).then(() => Promise.reject(new Error('too slow')));
    await Promise.race([use(client, that), late]);
  } catch (error) {
    failed += 1;
    console.log(`FAIL ${title}: it runs to its end: ${error}`);
  }
  await client.close().catch(() => {});
  console.log(`${title}: ${passed} passed, ${failed} failed`);
  return failed === 0 && passed > 0;
}

const server = spawn(program, ['http'], { stdio: ['ignore', 'ignore', 'pipe'] });
const [line] = await new Promise((resolve) => createInterface(server.stderr).once('line', (...words) => resolve(words)));
const url = new URL(line.split(' ').at(-1));
const held = [
  await run('TypeScript over HTTP', new StreamableHTTPClientTransport(url)),
  await run('TypeScript over stdio', new StdioClientTransport({ command: program, args: ['stdio'] })),
];
server.kill();
process.exit(held.every(Boolean) ? 0 : 1);
