import * as z from 'zod';
import { defineOperation, PUBLIC_ERRORS } from './operation.ts';

export const healthCheck = defineOperation({
  name: '_cleveragents/health/check',
  summary: 'Whether the service and its stores answer',
  role: 'public',
  params: z.strictObject({}),
  result: z.object({
    status: z.enum(['ok', 'degraded']),
    version: z.string(),
    checks: z.array(
      z.object({ name: z.string(), status: z.enum(['ok', 'failed']), latency_ms: z.number(), detail: z.string().optional() }),
    ),
  }),
  errors: PUBLIC_ERRORS,
  idempotent: true,
  cli: { command: ['health', 'check'] },
});

export const rpcDiscover = defineOperation({
  name: 'rpc.discover',
  summary: 'The operations as an OpenRPC document',
  role: 'public',
  params: z.strictObject({}),
  /** OpenRPC 1.3. */
  result: z.looseObject({ openrpc: z.string() }),
  errors: PUBLIC_ERRORS,
  idempotent: true,
});
