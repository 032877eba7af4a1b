// node judge.cjs <server|client> <version> <results>: holds what the suite left in a folder against scenarios.json.
// One line for each scenario that failed, or that nobody decided about; the last line is "<passed> <failed>".
'use strict';
const fs = require('fs');
const path = require('path');

const [mode, version, results] = process.argv.slice(2);
const { pass, out, excused } = require('./scenarios.json')[mode][version];

// The suite makes a folder for each scenario: `[server-]NAME-TIME`, names with a slash in a folder of their own.
const found = new Map();
for (const file of fs.readdirSync(results, { recursive: true })) {
  if (path.basename(file) !== 'checks.json') continue;
  const folder = path.dirname(file).replace(/-\d{4}-\d\d-\d\dT[0-9-]+Z$/, '');
  const name = mode === 'server' ? folder.replace(/^server-/, '') : folder;
  found.set(name, JSON.parse(fs.readFileSync(path.join(results, file), 'utf8')));
}

let passed = 0;
let failed = 0;
const fail = (name, why) => {
  failed += 1;
  console.log(`FAIL ${mode} ${version} ${name}: ${why}`);
};
for (const name of pass) {
  const checks = found.get(name);
  if (!checks || checks.length === 0) {
    fail(name, 'left no result');
    continue;
  }
  const bad = checks.filter((check) => ['FAILURE', 'WARNING'].includes(check.status) && !excused[check.id]);
  if (bad.length === 0) passed += 1;
  else fail(name, bad.map((check) => `${check.id}: ${check.errorMessage || check.description}`).join('; '));
}
for (const name of found.keys()) {
  const isOut = Object.keys(out).some((start) => name.startsWith(start));
  if (!pass.includes(name) && !isOut) fail(name, 'is new: decide about it in scenarios.json');
}
console.log(`${passed} ${failed}`);
