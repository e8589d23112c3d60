import assert from 'node:assert/strict';
import { test } from 'node:test';
import { greet } from '../src/greet.js';
import { GREETING } from '../src/greeting.js';

test('a greeting names the person', () => {
  assert.equal(greet('Ada'), `${GREETING}, Ada!`);
});
