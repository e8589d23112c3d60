/** `npm run build`, and wrangler's build command. */
import { runTypeScript } from './run-typescript.mjs';

await runTypeScript('scripts/build.ts');
