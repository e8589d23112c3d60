import { existsSync, readFileSync } from 'node:fs';
import { Ajv, type ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { expect } from 'vitest';
import type { ProtocolVersion } from '../../src/a2a/version.ts';

/** The A2A project's own files, where they lie beside the repository. A clone elsewhere has none: then these checks are skipped. */
const DATA = new URL('../../../shared/a2a/data/', import.meta.url);

export const ORACLES_PRESENT = existsSync(DATA);

/** For the names of suites that need the files. */
export const ORACLES_REASON = ORACLES_PRESENT ? '' : ' (skipped: ../shared/a2a/data is not beside this clone)';

export function readOracle(path: string): unknown {
  return JSON.parse(readFileSync(new URL(path, DATA), 'utf8'));
}

/** What is checked, by the names of the two official schemas. */
const DEFINITIONS = {
  task: { '1.0': 'Task', '0.3': 'GetTaskSuccessResponse' },
  sendResult: { '1.0': 'SendMessageResponse', '0.3': 'SendMessageSuccessResponse' },
  event: { '1.0': 'StreamResponse', '0.3': 'SendStreamingMessageSuccessResponse' },
  pushConfig: { '1.0': 'TaskPushNotificationConfig', '0.3': 'SetTaskPushNotificationConfigSuccessResponse' },
  pushList: { '1.0': 'ListTaskPushNotificationConfigsResponse', '0.3': 'ListTaskPushNotificationConfigSuccessResponse' },
  card: { '1.0': 'AgentCard', '0.3': 'AgentCard' },
} as const;

const validators = new Map<string, ValidateFunction>();

/** Checks a result (not its envelope) against the official schema of its version; does nothing where the files are absent. */
export function expectOfficial(version: ProtocolVersion, what: keyof typeof DEFINITIONS, result: unknown): void {
  if (!ORACLES_PRESENT) return;
  const name = DEFINITIONS[what][version];
  const subject = version === '0.3' && what !== 'card' ? { jsonrpc: '2.0', id: 1, result } : result;
  const validate = validatorOf(version, name);
  const valid = validate(subject);
  expect(valid ? [] : validate.errors, `${version} ${name}: ${JSON.stringify(result)}`).toEqual([]);
}

/** A definition of the 1.0 bundle that has no row above. */
export function expectOfficialDefinition(version: ProtocolVersion, name: string, subject: unknown): void {
  if (!ORACLES_PRESENT) return;
  const validate = validatorOf(version, name);
  expect(validate(subject) ? [] : validate.errors, `${version} ${name}: ${JSON.stringify(subject)}`).toEqual([]);
}

function validatorOf(version: ProtocolVersion, name: string): ValidateFunction {
  const key = `${version} ${name}`;
  const known = validators.get(key);
  if (known !== undefined) return known;
  const validate =
    version === '1.0' ? v1().getSchema(`lf.a2a.v1.${name}.jsonschema.json`) : v03().getSchema(`a2a-0.3#/definitions/${name}`);
  if (validate === undefined) throw new Error(`the official schema of ${key} was not found`);
  validators.set(key, validate);
  return validate;
}

interface Bundle {
  readonly definitions: Readonly<Record<string, object>>;
}

let ajvV1: Ajv2020 | undefined;
function v1(): Ajv2020 {
  if (ajvV1 !== undefined) return ajvV1;
  ajvV1 = new Ajv2020({ strict: false, allErrors: true });
  formats.default(ajvV1);
  const google = new Set(['Struct', 'Timestamp', 'Value']);
  for (const [title, schema] of Object.entries((readOracle('1.0/a2a.schema.json') as Bundle).definitions)) {
    const name = title.replaceAll(' ', '');
    ajvV1.addSchema({ ...schema, $id: `${google.has(title) ? 'google.protobuf' : 'lf.a2a.v1'}.${name}.jsonschema.json` });
  }
  return ajvV1;
}

let ajvV03: Ajv | undefined;
function v03(): Ajv {
  if (ajvV03 !== undefined) return ajvV03;
  ajvV03 = new Ajv({ strict: false, allErrors: true });
  formats.default(ajvV03);
  ajvV03.addSchema({ ...(readOracle('0.3/a2a.schema.json') as Bundle), $id: 'a2a-0.3' });
  return ajvV03;
}
