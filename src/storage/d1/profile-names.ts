import { type SQL, sql } from 'drizzle-orm';
import type { NeededProfile } from '../../app/ports.ts';

/**
 * What keeps the names of profiles from leading nowhere: whoever stores a name asks in the same statement whether the profile is there, and
 * its deletion asks in the same statement whether anything names it.
 */

/** Whether a custom profile is there, or none is needed: a condition of a statement that stores its name. */
export function isThere(org: string, needs: NeededProfile | undefined): SQL {
  if (needs === undefined) return sql`true`;
  return sql`(SELECT document FROM profile_versions WHERE org = ${org} AND name = ${needs.profile} ORDER BY version DESC LIMIT 1) IS NOT NULL`;
}

/** Scopes of settings that name a profile. */
export function scopesNaming(org: string, profile: string): SQL {
  return sql`SELECT scope FROM config_values WHERE org = ${org} AND key = 'core.automation-profile' AND value = ${JSON.stringify(profile)}`;
}

/** Actions that name a profile. */
export function actionsNaming(org: string, profile: string): SQL {
  return sql`SELECT name FROM actions WHERE org = ${org} AND body ->> '$.automation_profile' = ${profile}`;
}

/** Profiles whose newest version extends a profile. */
export function profilesNaming(org: string, profile: string): SQL {
  return sql`SELECT name FROM profile_versions AS v WHERE org = ${org} AND document ->> '$.extends' = ${profile}
    AND version = (SELECT max(version) FROM profile_versions WHERE org = v.org AND name = v.name)`;
}
