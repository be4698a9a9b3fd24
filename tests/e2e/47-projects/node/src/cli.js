#!/usr/bin/env node
'use strict';
const mri = require('mri');
const semver = require('semver');

const args = mri(process.argv.slice(2), { boolean: ['newest'] });
const good = args._.filter((v) => semver.valid(v));
if (args.newest) console.log(semver.rsort(good)[0] || 'none');
else console.log(String(good.length));
