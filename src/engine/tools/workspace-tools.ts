import { DELETE_FILE } from './delete-file.ts';
import { EDIT_FILE } from './edit-file.ts';
import { LIST_DIRECTORY } from './list-directory.ts';
import { MOVE_FILE } from './move-file.ts';
import { READ_FILE } from './read-file.ts';
import { SEARCH_CODE } from './search-code.ts';
import type { Tool, ToolPackage } from './tool.ts';
import { WRITE_FILE } from './write-file.ts';

/** The tools every plan has on its workspace. One more is one more file and one more row. */
export const WORKSPACE_TOOLS: readonly Tool[] = [READ_FILE, WRITE_FILE, EDIT_FILE, DELETE_FILE, MOVE_FILE, LIST_DIRECTORY, SEARCH_CODE];

export const WORKSPACE_TOOL_PACKAGE: ToolPackage = { name: 'workspace', tools: WORKSPACE_TOOLS };
