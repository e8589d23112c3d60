import { MAX_GLOB_LENGTH } from '../../core/workspace/path-glob.ts';
import { MAX_QUERY_LENGTH, MAX_SEARCH_RESULTS } from '../../core/workspace/search.ts';
import { argumentsSchema, flagArgument, numberArgument, textArgument } from './arguments.ts';
import { failed, type Tool } from './tool.ts';

/** Longest text of matches in one answer, in UTF-16 units. */
const MAX_RESULT_LENGTH = 65_536;

/** Finds the lines that contain a text as it stands, never as a pattern. */
export const SEARCH_CODE: Tool = {
  spec: {
    name: 'search_code',
    aliases: ['search_files', 'code_search'],
    summary: 'Find the lines of the project that contain a text, taken literally',
    riskClass: 'read',
    parameters: argumentsSchema(
      {
        query: { type: 'string', minLength: 1, maxLength: MAX_QUERY_LENGTH, description: 'The text to look for, within one line' },
        ignore_case: { type: 'boolean', description: 'Find upper and lower case alike' },
        path_glob: {
          type: 'string',
          minLength: 1,
          maxLength: MAX_GLOB_LENGTH,
          description: "Only files that match, as in a .gitignore line: '*.ts', 'src', 'src/**/test.ts'",
        },
        max_results: { type: 'integer', minimum: 1, maximum: MAX_SEARCH_RESULTS, description: 'Most matches to answer; by default 100' },
      },
      ['query'],
    ),
    priceMicroUsd: 0,
    scope: 'workspace',
    idempotent: true,
    skillCategory: 'files',
  },
  async perform(args, { workspace }) {
    const query = textArgument(args, 'query');
    if (query === '' || /[\r\n]/.test(query)) return failed('invalid_arguments', 'arguments.query: must be text within one line');
    const maxResults = numberArgument(args, 'max_results');
    const pathGlob = args.path_glob;
    const { matches, truncated } = await workspace.search(query, {
      ignoreCase: flagArgument(args, 'ignore_case'),
      ...(typeof pathGlob === 'string' ? { pathGlob } : {}),
      ...(maxResults === undefined ? {} : { maxResults }),
    });
    let length = 0;
    const shown = matches.filter((match) => {
      length += match.path.length + match.text.length;
      return length <= MAX_RESULT_LENGTH;
    });
    return {
      status: 'succeeded',
      result: {
        query,
        matches: shown.map(({ path, line, text }) => ({ path, line, text })),
        truncated: truncated || shown.length < matches.length,
      },
    };
  },
};
