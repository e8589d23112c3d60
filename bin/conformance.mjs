/** `npm run conformance`. */
import { runTypeScript } from './run-typescript.mjs';

await runTypeScript('test/conformance/start.ts');
