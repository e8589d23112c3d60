#!/usr/bin/env node
/** The `agents` command. */
import { runTypeScript } from './run-typescript.mjs';

await runTypeScript('src/cli/main.ts');
