/** The examples of the repository, as a development start uses them: actions to add, and a project to import. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ParamsInputOf } from '../api/operations.ts';
import { REPOSITORY } from './build-worker.ts';

/** The folder whose files are the project `example`. */
export const EXAMPLE_PROJECT_DIRECTORY = join(REPOSITORY, 'examples/project');

/** The name under which it is imported; the example actions name it too. */
export const EXAMPLE_PROJECT = 'example';

const ACTIONS_DIRECTORY = join(REPOSITORY, 'examples/actions');

type ActionDocument = ParamsInputOf<'_cleveragents/action/add'>['action'];

/** The documents as they are sent; the service is who checks them. */
export async function readExampleActions(): Promise<readonly ActionDocument[]> {
  const names = (await readdir(ACTIONS_DIRECTORY)).filter((name) => name.endsWith('.json')).sort();
  return Promise.all(names.map(async (name) => JSON.parse(await readFile(join(ACTIONS_DIRECTORY, name), 'utf8')) as ActionDocument));
}
