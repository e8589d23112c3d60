import { commandOfWord, type HaltChange } from '../../core/halt-word.ts';
import type { HaltLevel, HaltWord } from '../../core/plan/plan.ts';
import { HaltBook } from './halt-book.ts';
import type { PushTarget } from './push-book.ts';
import { type TellPlans, tellWhatIsDue } from './tell-plans.ts';

/** What the switch needs of the object that it is part of. */
export interface SwitchHost {
  nowMs(): number;
  /** Something is due at another time than before. */
  rearm(): void;
  report(problem: string, cause: unknown): void;
}

/** The kill switch of a session's or an org's object: the word in its book, and the plans below that have to hear it. */
export class HaltSwitch {
  private readonly storage: DurableObjectStorage;
  private readonly book: HaltBook;
  private readonly host: SwitchHost;

  constructor(storage: DurableObjectStorage, level: HaltLevel, host: SwitchHost) {
    this.storage = storage;
    this.book = new HaltBook(storage.sql, level);
    this.host = host;
  }

  word(): HaltWord | null {
    return this.book.show();
  }

  /** The word that holds from now on. Null: nothing was set to clear. */
  change(target: PushTarget, change: HaltChange): HaltWord | null {
    const word = this.storage.transactionSync(() => this.book.change(target, change, this.host.nowMs()));
    this.host.rearm();
    return word;
  }

  told(epoch: number): void {
    this.book.push.end(epoch);
  }

  wakeAtMs(): number | null {
    return this.book.push.dueMs();
  }

  wake(tell: TellPlans): Promise<void> {
    const newest = () => {
      const word = this.book.show();
      return word === null ? null : commandOfWord(word, this.book.push.current()?.sessionId ?? null);
    };
    return tellWhatIsDue(this.book.push, newest, tell, this.host);
  }
}
