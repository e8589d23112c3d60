import { defineConfig } from 'drizzle-kit';

/**
 * `npm run migrations` writes the next numbered SQL file from src/storage/d1/schema.ts. Read it before committing: tables that should be
 * `WITHOUT ROWID` get that by hand, and a file that has been released is never edited.
 */
export default defineConfig({
  dialect: 'sqlite',
  schema: './src/storage/d1/schema.ts',
  out: './migrations',
});
