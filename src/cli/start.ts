/** `npm start -- [--port N] [--state DIR] [--open]`: the product on this machine. */
import { PRODUCT_BUILD } from './build-worker.ts';
import { serverCommand } from './server-command.ts';

process.exitCode = await serverCommand(process.argv.slice(2), PRODUCT_BUILD);
