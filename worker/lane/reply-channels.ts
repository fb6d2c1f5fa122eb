/**
 * The channels of a worker: for each gateway, what it was sent so far and whether more is under
 * way. A gateway hears of a worker before that worker commits anything for it, so it notices when
 * the worker dies between the commit and the reply. Nothing is sent here: these are the rules.
 */
import type { Mark } from "#shared/contract/reply.js";

interface Channel {
  readonly id: number;
  /** That of the last message. */
  number: number;
  /** Commits for the gateway that have not been answered yet. */
  commits: number;
  /** Whether the gateway was told that more is to come, and so listens for it. */
  isAwake: boolean;
  /** Whether a message was sent since the last beat was due. */
  hasSent: boolean;
  /** Beats that were due since the channel was last awake. */
  restedFor: number;
}

/** What is to be sent to a gateway. */
export interface Due {
  readonly gateway: string;
  readonly mark: Mark;
}

/**
 * A channel that has been at rest for this many beats is forgotten: its gateway is gone, or sends
 * nothing here. The next one for the same gateway counts from 1 again, under a higher id.
 */
const FORGET_AFTER_BEATS = 2_400;

export class ReplyChannels {
  readonly #sender: string;
  readonly #channels = new Map<string, Channel>();
  #lastId = 0;

  /** @param sender as in `Mark` */
  constructor(sender: string) {
    this.#sender = sender;
  }

  /**
   * A commit for this gateway begins.
   * @returns what the gateway must be sent before it; undefined where it listens already
   */
  begin(gateway: string): Mark | undefined {
    const channel = this.#channelOf(gateway);
    channel.commits++;
    return channel.isAwake ? undefined : this.#wake(channel);
  }

  /** The commit has been answered, and its outcomes were published. */
  end(gateway: string): void {
    this.#channelOf(gateway).commits--;
  }

  /** Gives the mark of a message with replies. */
  next(gateway: string): Mark {
    const channel = this.#channelOf(gateway);
    channel.isAwake = true;
    return this.#number(channel, "replies");
  }

  /** Leaves a gap: the gateway looks into Redis when it hears of this worker again. */
  skip(gateway: string): void {
    const channel = this.#channelOf(gateway);
    channel.isAwake = true;
    channel.number++;
  }

  /**
   * What is due at a beat: one beat to each gateway that waits for commits and has heard nothing
   * since the beat before, and a last word to those that nothing is under way for.
   */
  beat(): Due[] {
    const due: Due[] = [];
    for (const [gateway, channel] of this.#channels) {
      if (!channel.isAwake) {
        if (++channel.restedFor > FORGET_AFTER_BEATS) this.#channels.delete(gateway);
      } else if (channel.hasSent) channel.hasSent = false;
      else due.push({ gateway, mark: channel.commits > 0 ? this.#number(channel, "beat") : this.#rest(channel) });
    }
    return due;
  }

  /**
   * What is due when messages may have been lost, or when the worker leaves: each gateway is told
   * how many messages there were.
   */
  all(): Due[] {
    return [...this.#channels].map(([gateway, channel]) => {
      return { gateway, mark: channel.commits > 0 ? this.#wake(channel) : this.#rest(channel) };
    });
  }

  #channelOf(gateway: string): Channel {
    let channel = this.#channels.get(gateway);
    if (channel === undefined) {
      channel = { id: ++this.#lastId, number: 0, commits: 0, isAwake: false, hasSent: false, restedFor: 0 };
      this.#channels.set(gateway, channel);
    }
    return channel;
  }

  #wake(channel: Channel): Mark {
    channel.isAwake = true;
    return this.#number(channel, "beat");
  }

  #rest(channel: Channel): Mark {
    channel.isAwake = false;
    channel.restedFor = 0;
    return this.#number(channel, "rest");
  }

  #number(channel: Channel, kind: Mark["kind"]): Mark {
    channel.hasSent = true;
    return { sender: this.#sender, channel: channel.id, number: ++channel.number, kind };
  }
}
