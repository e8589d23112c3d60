/** As `npm start`, with the test Worker (the product's composition plus the test tool package). */
import { TEST_BUILD } from '../../src/cli/build-worker.ts';
import { serverCommand } from '../../src/cli/server-command.ts';

process.exitCode = await serverCommand(process.argv.slice(2), TEST_BUILD);
