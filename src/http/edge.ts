import type { PrincipalCache } from '../app/principal-cache.ts';
import type { Services } from '../app/services.ts';
import type { StreamTiming } from './event-stream.ts';
import type { Report } from './failure.ts';

/** What a request is answered with. `services` belongs to the request, the rest to the isolate. */
export interface Edge {
  readonly services: Services;
  readonly principals: PrincipalCache;
  readonly report: Report;
  readonly streamTiming: StreamTiming;
}
