/** The examples of the repository as a development start uses them: actions that were checked, and the project's files as texts. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { EXAMPLE_PROJECT_DIRECTORY, readExampleActions } from '../../src/cli/example-files.ts';
import { walkTree } from '../../src/cli/walk-tree.ts';
import { type ActionDocument, parseAction } from '../../src/core/action.ts';

/** Throws what `action/add` would refuse. */
export async function exampleActions(): Promise<readonly ActionDocument[]> {
  return (await readExampleActions()).map((document) => {
    const parsed = parseAction(document);
    if (!parsed.ok) throw new Error(parsed.error.message);
    return parsed.value;
  });
}

/** By path; what an import would leave out is not there. */
export async function exampleProjectFiles(): Promise<Readonly<Record<string, string>>> {
  const { files } = await walkTree(EXAMPLE_PROJECT_DIRECTORY);
  const texts = files.map(async ({ path }) => [path, await readFile(join(EXAMPLE_PROJECT_DIRECTORY, path), 'utf8')] as const);
  return Object.fromEntries(await Promise.all(texts));
}
