/**
 * `npm ci && npm start` as a newcomer runs it, in the clone given as first argument; writes what it came to into the second.
 * Plain JavaScript for whatever Node the machine has. Ends only the process that it started.
 */
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const [clone, summaryPath] = process.argv.slice(2);
const state = join(clone, '..', 'state');
const failures = [];
const skipped = [];
let passed = 0;

/** The command of the README, with a free port and a folder of its own; npm passes what follows `--` on. */
const COMMAND = 'npm ci && exec npm start -- --port 0 --state "$STATE"';
const INSTALL_AND_START_TIMEOUT_MS = 300_000;

const server = spawn('sh', ['-c', COMMAND], { cwd: clone, env: { ...process.env, STATE: state }, stdio: ['ignore', 'pipe', 'pipe'] });
let output = '';
for (const stream of [server.stdout, server.stderr]) {
  stream.setEncoding('utf8').on('data', (chunk) => {
    output += chunk;
    process.stdout.write(chunk);
  });
}
const ended = new Promise((done) => server.on('exit', (code, signal) => done({ code, signal })));

await check('the README names both commands as they were run', () => {
  const readme = readFileSync(join(clone, 'README.md'), 'utf8');
  for (const command of ['npm ci && npm start', 'npm cit']) {
    if (!readme.includes(command)) throw new Error(`README.md does not hold "${command}"`);
  }
});
await check('the server starts and announces itself', async () => {
  const deadline = Date.now() + INSTALL_AND_START_TIMEOUT_MS;
  while (!output.includes('Stop with Ctrl-C.')) {
    if (server.exitCode !== null || server.signalCode !== null) throw new Error('it ended instead');
    if (Date.now() > deadline) throw new Error('it did not in time');
    await sleep(100);
  }
});
await check('the example plan waits for its approval, and the next commands are printed', async () => {
  const { result } = await call('_cleveragents/plan/list', JSON.parse(readFileSync(join(state, 'connection.json'), 'utf8')).key);
  if (result?.plans?.[0]?.pending_approvals !== 1) throw new Error(`the plans are ${JSON.stringify(result?.plans)}`);
  if (!output.includes('npx agents approvals approve ')) throw new Error('no command for the approval');
});
// Reported, not judged: how long it takes depends on what else the machine does.
console.log(`         npm start: ${/ready in [\d.]+ s/.exec(output)?.[0] ?? 'ready after an unknown time'}`);
const connection = await check('connection.json can be read by its owner only', () => {
  const path = join(state, 'connection.json');
  const mode = statSync(path).mode & 0o777;
  if (mode !== 0o600) throw new Error(`its mode is ${mode.toString(8)}`);
  const value = JSON.parse(readFileSync(path, 'utf8'));
  for (const member of ['url', 'org', 'key', 'agent_key']) {
    if (typeof value[member] !== 'string' || value[member] === '') throw new Error(`it has no ${member}`);
  }
  return value;
});
await check('health answers', () => fetchJson('/health'));
for (const path of ['/.well-known/agent-card.json', '/.well-known/agent.json']) {
  await check(`the Agent Card is at ${path}`, async () => {
    const card = await fetchJson(path);
    if (typeof card.name !== 'string' || !Array.isArray(card.skills)) throw new Error('it is not an Agent Card');
  });
}
await check('a call with the key works', async () => {
  const { result } = await call('_cleveragents/plan/list', connection.key);
  if (!Array.isArray(result?.plans)) throw new Error('it did not list plans');
});
await check("a call with the agent's key works", async () => {
  const { result } = await call('_cleveragents/plan/list', connection.agent_key);
  if (!Array.isArray(result?.plans)) throw new Error('it did not list plans');
});
await check('a call without a key is refused', async () => {
  const response = await post('_cleveragents/plan/list', undefined);
  if (response.status !== 401) throw new Error(`it answered ${response.status}`);
});
const descendants = descendantsOf(server.pid);
await check('SIGTERM ends it with exit code 0', async () => {
  server.kill('SIGTERM');
  const late = sleep(10_000, undefined, { ref: false });
  const exit = await Promise.race([ended, late]);
  if (exit === undefined) throw new Error('it did not end within 10 s');
  if (exit.code !== 0) throw new Error(`exit code ${exit.code}, signal ${exit.signal}`);
});
if (descendants === undefined) skipped.push({ name: 'npm start: no process is left', reason: 'needs /proc' });
else {
  await check('no process is left', () => {
    const left = descendants.filter((pid) => existsSync(`/proc/${pid}`) && statOf(pid)?.state !== 'Z');
    if (descendants.length === 0) throw new Error('there was none to begin with');
    if (left.length > 0) throw new Error(`left: ${left.join(', ')}`);
  });
}
// Only when it would not end by itself; npm is its own child, known by its id.
if (server.exitCode === null && server.signalCode === null) server.kill('SIGKILL');

writeFileSync(summaryPath, JSON.stringify({ passed, failed: failures.length, failures, skipped }));
process.exit(failures.length === 0 ? 0 : 1);

async function check(name, run) {
  try {
    const value = await run();
    passed += 1;
    console.log(`passed   npm start: ${name}`);
    return value;
  } catch (error) {
    failures.push(`npm start: ${name}: ${error.message}`);
    console.log(`FAILED   npm start: ${name}: ${error.message}`);
    return undefined;
  }
}

function urlOf(path) {
  const url = /running at (http:\S+)/.exec(output)?.[1];
  if (url === undefined) throw new Error('there is no address');
  return `${url}${path}`;
}

async function fetchJson(path) {
  const response = await fetch(urlOf(path), { signal: AbortSignal.timeout(10_000) });
  if (response.status !== 200) throw new Error(`it answered ${response.status}`);
  return response.json();
}

function post(method, key) {
  const headers = { 'content-type': 'application/json', ...(key === undefined ? {} : { authorization: `Bearer ${key}` }) };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: {} });
  return fetch(urlOf('/a2a'), { method: 'POST', headers, body, signal: AbortSignal.timeout(10_000) });
}

async function call(method, key) {
  const response = await post(method, key);
  const answer = await response.json();
  if (answer.error !== undefined) throw new Error(`it answered ${response.status} ${JSON.stringify(answer.error)}`);
  return answer;
}

/** Every process below `root`, from /proc; undefined where there is none. */
function descendantsOf(root) {
  if (!existsSync('/proc/self/stat')) return undefined;
  const parents = new Map(
    readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map((name) => [Number(name), statOf(name)?.parent]),
  );
  const below = (pid) => [...parents].filter(([, parent]) => parent === pid).flatMap(([child]) => [child, ...below(child)]);
  return below(root);
}

function statOf(pid) {
  try {
    const [state, parent] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1).split(' ');
    return { state, parent: Number(parent) };
  } catch {
    return undefined;
  }
}
