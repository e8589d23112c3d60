import { matchesPattern } from '../names.ts';
import type { Guard } from './guard.ts';

/** Where categories are named, the call's skill must be in one of them; a call without a category is in none. No approval replaces it. */
export const skillCategoryGuard: Guard = {
  name: 'skill_category',
  events: { allowed: 'skill_category_allowed', refused: 'skill_category_blocked' },
  check: ({ skillCategories }, { skillCategory, shownName }) => {
    const permitted = skillCategories.every(
      ({ entries }) => skillCategory !== null && entries.some((entry) => matchesPattern(entry, skillCategory)),
    );
    if (permitted) return null;
    const which =
      skillCategory === null ? 'belongs to no skill category' : `belongs to the skill category '${skillCategory}', which is not allowed`;
    return { reason: `Tool '${shownName}' ${which}. Remediation: extend allowed_skill_categories, or use another tool.`, approval: 'none' };
  },
};
