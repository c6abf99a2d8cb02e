// SPDX-License-Identifier: MIT
//
// What the scripts for the Node clients share: arguments and where a client is installed.
// Arguments: PORT PROTOCOL FOLDER [AUTHORITY]: the folder holds the node_modules of one client
// version; with the file of an authority the client speaks TLS.
'use strict';
const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { createRequire } = require('node:module');

const [port, protocol, folder, authority] = process.argv.slice(2);
// Timeout of the clients in milliseconds. It passes only if the server hangs.
const patienceMs = 60_000 * Number(process.env.BLOOMERY_SLOW ?? 1);
// Options of node:tls, undefined without encryption.
const tls = authority && { ca: fs.readFileSync(authority), servername: 'localhost' };

// Loads a package from the client's own folder and not from wherever this script lies.
function load(name) {
  return createRequire(path.join(path.resolve(folder), 'x.cjs'))(name);
}

async function rejects(promise, pattern) {
  await assert.rejects(promise, (error) => {
    assert.match(String(error.message), pattern);
    return true;
  });
}

// One who listens to `c` and `p*`, and adds [channel, message] to `heard`, hears both messages.
async function checkHeard(client, heard) {
  assert.equal(await client.publish('c', 'one'), 1);
  assert.equal(await client.publish('p1', 'two'), 1);
  while (heard.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.deepEqual(heard.sort(), [
    ['c', 'one'],
    ['p1', 'two'],
  ]);
}

// Runs the test; any failure ends the process with a message and code 1.
function run(test) {
  test().then(
    () => process.exit(0),
    (error) => {
      console.error(error);
      process.exit(1);
    }
  );
}

module.exports = {
  assert,
  checkHeard,
  load,
  patienceMs,
  port: Number(port),
  protocol: Number(protocol),
  rejects,
  run,
  tls,
};
