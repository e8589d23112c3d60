/** Entry of the Worker: exports the Durable Object classes and answers requests. */
import { DurableObject } from 'cloudflare:workers';

/** One plan. */
export class PlanObject extends DurableObject {}

/** One project. */
export class ProjectObject extends DurableObject {}

export default {
  fetch(request: Request): Response {
    const { pathname } = new URL(request.url);
    return pathname === '/health' ? Response.json({ status: 'ok' }) : new Response('Not found', { status: 404 });
  },
};
