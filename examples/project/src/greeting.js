/** What people are greeted with. */
export const GREETING = 'Hello';
