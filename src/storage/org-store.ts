/** The organisations of the deployment. A row says only that the org is in use; what belongs to it lives in the other stores. */
export interface OrgStore {
  /** Creates the org unless it exists; the first `createdAt` is kept. */
  ensure(org: string, createdAt: string): Promise<void>;
}
