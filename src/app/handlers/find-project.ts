import { notFound, type Refusal } from '../../core/refusal.ts';
import { err, ok, type Result } from '../../core/result.ts';
import type { ProjectPort, ProjectRecord } from '../ports.ts';
import type { Services } from '../services.ts';

export interface FoundProject {
  readonly record: ProjectRecord;
  readonly port: ProjectPort;
}

/** A project that is registered in the org. One of another org is answered exactly like one that does not exist. */
export async function findProject(org: string, name: string, services: Services): Promise<Result<FoundProject, Refusal>> {
  const record = await services.projectStore.get(org, name);
  return record === null ? err(unknownProject(name)) : ok({ record, port: services.projects.project(org, name) });
}

export function unknownProject(name: string): Refusal {
  return notFound('project', name, { project: name });
}
