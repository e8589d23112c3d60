/** `npm run build`: builds the Worker if its sources have changed. With an entry and a folder, that Worker. Also wrangler's build command. */
import { buildWorker, PRODUCT_BUILD } from '../src/cli/build-worker.ts';

const [entry = PRODUCT_BUILD.entry, outDir = PRODUCT_BUILD.outDir] = process.argv.slice(2);
const { rebuilt } = await buildWorker({ entry, outDir });
process.stderr.write(`${outDir}: ${rebuilt ? 'built' : 'up to date'}\n`);
// The bundler keeps a helper process for further builds; there are none.
process.exit(0);
