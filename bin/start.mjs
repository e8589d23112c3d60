/** `npm start`. */
import { runTypeScript } from './run-typescript.mjs';

await runTypeScript('src/cli/start.ts');
