'use strict';
const { execFileSync, spawnSync } = require('node:child_process');
const { test } = require('uvu');
const assert = require('uvu/assert');

const cli = `${__dirname}/../src/cli.js`;

test('counts versions', () => {
  assert.is(execFileSync(cli, ['1.2.3', 'x', '2.0.0']).toString(), '2\n');
});
test('finds the newest one', () => {
  const r = spawnSync(process.execPath, [cli, '--newest', '1.2.3', '10.0.0', '2.0.0']);
  assert.is(r.stdout.toString(), '10.0.0\n');
});
test.run();
