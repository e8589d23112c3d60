import * as z from 'zod';
import { ActionName } from '../core/action.ts';
import { MAX_FILE_BYTES, MAX_FILES } from '../core/workspace/tree.ts';
import { COMMON_ERRORS, defineOperation } from './operation.ts';
import {
  base64,
  count,
  digest,
  fileMode,
  jsonObject,
  nameReference,
  nextPageToken,
  optional,
  pageSize,
  pageToken,
  text,
  timestamp,
  treePath,
} from './schemas.ts';

const name = nameReference.meta({ description: 'Name of the project' });

const onProject = [...COMMON_ERRORS, 'not_found'] as const;

export const projectView = z.object({
  name: z.string(),
  settings: jsonObject,
  /** Tree digest. */
  head: z.string(),
  files: z.number(),
  total_bytes: z.number(),
  commits: z.number(),
  created_at: timestamp,
  updated_at: timestamp,
});
export type ProjectView = z.output<typeof projectView>;

/** Also the result of `registry/project/list`. */
export const projectListResult = z.object({
  projects: z.array(z.object({ name: z.string(), settings: jsonObject, created_at: timestamp })),
  next_page_token: nextPageToken,
});

export const projectCreate = defineOperation({
  name: '_cleveragents/project/create',
  change: { type: 'project_created', subject: ['name'], recorded: ['name', 'head'] },
  summary: 'Make an empty project',
  role: 'admin',
  freshKey: true,
  params: z.strictObject({
    name: ActionName.meta({ description: 'Name of the project' }),
    settings: optional(
      z.strictObject({
        description: optional(text(2000).meta({ description: 'What the project is' })),
        protected_paths: optional(
          z
            .array(text(500))
            .max(200, 'at most 200 entries')
            .meta({ description: 'Globs whose change raises the risk, chosen by people; the usual ones when absent' }),
        ),
      }),
    ),
  }),
  result: projectView,
  errors: [...COMMON_ERRORS, 'already_exists'],
  cli: { command: ['project', 'create'], positional: ['name'] },
});

export const projectBlobMissing = defineOperation({
  name: '_cleveragents/project/blob/missing',
  summary: 'Which of these blobs the project does not hold yet',
  role: 'admin',
  freshKey: true,
  params: z.strictObject({ name, digests: z.array(digest).max(MAX_FILES, `at most ${MAX_FILES} digests per call`) }),
  result: z.object({ missing: z.array(z.string()) }),
  errors: onProject,
  idempotent: true,
});

export const projectBlobPut = defineOperation({
  name: '_cleveragents/project/blob/put',
  summary: 'Store blobs by digest; a digest that does not match refuses the whole batch',
  role: 'admin',
  freshKey: true,
  params: z.strictObject({
    name,
    blobs: z.array(z.strictObject({ digest, base64 })).min(1, 'at least one blob').max(2000, 'at most 2000 blobs per call'),
  }),
  result: z.object({ stored: z.number() }),
  errors: onProject,
  idempotent: true,
});

const change = z.strictObject({
  path: treePath,
  entry: z
    .nullable(z.strictObject({ mode: fileMode, digest, size_bytes: count(MAX_FILE_BYTES) }))
    .meta({ description: 'null deletes the path' }),
});

export const projectCommit = defineOperation({
  name: '_cleveragents/project/commit',
  summary: "Change the project's head by compare-and-set; the same commit_id is done once",
  role: 'admin',
  humanOnly: true,
  freshKey: true,
  params: z.strictObject({
    name,
    commit_id: text(128).meta({ description: 'Unique per commit; repeating it answers the first outcome' }),
    expected_head: z.nullable(digest).meta({ description: 'Head that the changes were made against; null accepts any' }),
    mode: z.enum(['replace', 'patch'], 'must be replace or patch').meta({ description: 'replace: the changes are the whole tree' }),
    changes: z.array(change).max(MAX_FILES, `at most ${MAX_FILES} changes per commit`),
    message: optional(text(2000)),
  }),
  result: z.object({ status: z.literal('committed'), head: z.string(), previous: z.string(), files: z.number() }),
  errors: [...onProject, 'already_exists', 'invalid_state'],
  idempotent: true,
});

export const projectShow = defineOperation({
  name: '_cleveragents/project/show',
  summary: 'One project with its head',
  role: 'viewer',
  params: z.strictObject({ name }),
  result: projectView,
  errors: onProject,
  idempotent: true,
  cli: { command: ['project', 'show'], positional: ['name'] },
});

export const projectList = defineOperation({
  name: '_cleveragents/project/list',
  summary: 'Projects by name',
  role: 'viewer',
  params: z.strictObject({}),
  result: projectListResult,
  errors: COMMON_ERRORS,
  idempotent: true,
  cli: { command: ['project', 'list'] },
});

export const projectTree = defineOperation({
  name: '_cleveragents/project/tree',
  summary: "The files of the project's head, or of one folder of it",
  role: 'viewer',
  params: z.strictObject({
    name,
    path: optional(treePath.meta({ description: 'Folder; absent = the root' })),
    page_size: z
      .int('must be a whole number')
      .min(1, 'must be 1 to 1000')
      .max(1000, 'must be 1 to 1000')
      .default(1000)
      .meta({ description: 'Entries per page, 1 to 1000' }),
    page_token: pageToken,
  }),
  result: z.object({
    name: z.string(),
    head: z.string(),
    entries: z.array(z.object({ path: z.string(), mode: z.string(), digest: z.string(), size_bytes: z.number() })),
    next_page_token: nextPageToken,
  }),
  errors: onProject,
  idempotent: true,
  cli: { command: ['project', 'tree'], positional: ['name', 'path'] },
});

export const projectFileRead = defineOperation({
  name: '_cleveragents/project/file/read',
  summary: "One file of the project's head",
  role: 'viewer',
  params: z.strictObject({ name, path: treePath.meta({ description: 'Path in the project' }) }),
  result: z.object({
    name: z.string(),
    head: z.string(),
    path: z.string(),
    mode: z.string(),
    digest: z.string(),
    size_bytes: z.number(),
    base64: z.string(),
  }),
  errors: onProject,
  idempotent: true,
  cli: { command: ['project', 'read'], positional: ['name', 'path'] },
});

export const projectExport = defineOperation({
  name: '_cleveragents/project/export',
  summary: "All files of the project's head, in batches; every page is of the head of the first",
  role: 'viewer',
  params: z.strictObject({ name, page_size: pageSize, page_token: pageToken }),
  result: z.object({
    name: z.string(),
    head: z.string(),
    files: z.array(z.object({ path: z.string(), mode: z.string(), base64: z.string() })),
    next_page_token: nextPageToken,
  }),
  errors: onProject,
  idempotent: true,
});
