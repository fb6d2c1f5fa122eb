/**
 * The channels of a worker: for each gateway, the number of messages so far, and whether more is
 * under way. A gateway hears of a worker before that worker commits anything for the gateway. So
 * the gateway notices if the worker dies between the commit and the reply. This file has only the
 * rules, and sends nothing.
 */
import type { Mark } from "#shared/contract/reply.js";

interface Channel {
  readonly id: number;
  /** The number of the last message. */
  number: number;
  /** Commits for the gateway that Redis has not answered yet. */
  commits: number;
  /** Whether the gateway knows that more is to come, and so listens. */
  isAwake: boolean;
  /** Whether the worker has sent a message since the last beat was due. */
  hasSent: boolean;
  /** Beats that were due since the channel was last awake. */
  restedFor: number;
}

/** A message that the worker must send to a gateway. */
export interface Due {
  readonly gateway: string;
  readonly mark: Mark;
}

/**
 * After this many beats at rest, the worker forgets a channel: its gateway is gone, or sends
 * nothing here. The next channel to the same gateway counts from 1 again, under a higher id.
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
   * @returns the message to send before the commit; undefined if the gateway already listens
   */
  begin(gateway: string): Mark | undefined {
    const channel = this.#channelOf(gateway);
    channel.commits++;
    return channel.isAwake ? undefined : this.#wake(channel);
  }

  /** Redis has answered the commit, and the worker has published its outcomes. */
  end(gateway: string): void {
    this.#channelOf(gateway).commits--;
  }

  /** Gives the mark of a message with replies. */
  next(gateway: string): Mark {
    const channel = this.#channelOf(gateway);
    channel.isAwake = true;
    return this.#number(channel, "replies");
  }

  /** Leaves a gap: the gateway looks into Redis when it next hears of this worker. */
  skip(gateway: string): void {
    const channel = this.#channelOf(gateway);
    channel.isAwake = true;
    channel.number++;
  }

  /**
   * The messages that are due at a beat. A gateway that waits for commits gets a beat if it has
   * heard nothing since the beat before. A gateway with nothing under way gets a last message.
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
   * The messages that are due after a possible loss, or when the worker leaves. Each gateway learns
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
