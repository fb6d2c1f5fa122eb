"""Tells tales with the trained model and counts what is wrong with them, as far as a program can
tell."""

import itertools
import random
import re

import tales
from tales import CREATURES, DEEDS, PORTAL, Deed, Hero, deed_for, held_out, suits, turn

PROMPTS = 40


def any_of(options, group: str = "?:") -> str:
    return f"({group}{'|'.join(options)})"


def expression(template: str, words: dict[str, str]) -> str:
    """A template as a regular expression; `words` gives the slots' expressions."""

    def slot(found: re.Match) -> str:
        key = found.group(1).removesuffix(":C")
        if key in words and key == found.group(1):
            return words[key]
        # A capital letter: only the first letter of the value matters.
        return "(?i:" + words[key if key in words else key[0].lower() + key[1:]] + ")"

    for mark in ".?":
        template = template.replace(mark, "\\" + mark)
    return re.sub(r"\{([\w:]+)\}", slot, template.replace("(", "(?:").replace("(?:?", "(?"))


def flawless(tale: str, kind: str, deed: Deed) -> bool:
    """Whether the tale is, to the letter, one that the grammar could have told about this hero and
    deed: every stage in its order, and the same names, pronouns, place and details wherever they
    are mentioned."""
    genders, adjectives, moves, paw, home, habits = CREATURES[kind]
    pronouns = [tales.SHE if g == "s" else tales.HE for g in ("sh" if genders == "b" else genders)]
    names = re.findall(r"named ([A-Z]\w+)", tale)
    opening = re.match(r"([A-Z]\w+) was", tale)
    name, friend = ([opening[1], *names] if opening else names + ["", ""])[:2] if names else ("", "")

    def told(options: list[str]) -> list[str]:
        """Those that the tale mentions, so that there is less to try."""
        return [o for o in options if o.split("{")[0].lower() in tale.lower()] or options[:1]

    for hero, helper, (at, place), x, y in itertools.product(
        pronouns, (tales.SHE, tales.HE), tales.HOMES[home], told(deed.x), told(deed.y)
    ):
        if not name or not friend or at.lower() not in tale.lower():
            continue
        words = {
            "N": name, "F": friend, "kind": kind, "paw": paw, "home": at, "place": place, "a": "an?", **hero,
            "adj": any_of(adjectives.split("|")), "habit": any_of(habits.split("|")), "went": any_of(moves.split("|")),
            "friend": f"an? {any_of(tales.FRIEND_ADJECTIVES)} {any_of(tales.FRIENDS)} named {friend}",
            "x": x.replace("{place}", place), "y": y.replace("{place}", place), "past": deed.past.replace("{his}", hero["his"]),
            **{"f" + key: word for key, word in helper.items()},
        }  # fmt: skip
        stage = [any_of(expression(t, words) for t in options) for options in deed.stages]
        first = any_of(expression(t, words) for t in tales.OPENINGS) + any_of((" " + expression(t, words) for t in tales.HABITS)) + "?"
        last = any_of(" " + expression(t, words) for t in tales.ENDINGS) + "?"
        if re.fullmatch(" ".join([first, *stage]) + last, tale):
            return True
    return False


def faults(tale: str, ended: bool, hero: Hero, deed: Deed, lexicon: set[str]) -> list[str]:
    found = [] if ended else ["no end"]
    words = re.findall(r"[A-Za-z]+", tale)
    if not 60 <= len(words) <= 170:
        found.append("length")
    if hero.kind not in words:
        found.append("hero")
    if deed.now.split()[-1] not in words:
        found.append("deed")
    # At most two names, the hero's (from the prompt, if the prompt has a name) and the helper's,
    # and both more than once.
    names = {word for word in re.findall(r"(?<=[a-z,] )[A-Z][a-z]+", tale)} - {"Milky", "Way", "Sunday"}
    if len(names) > 2 or any(words.count(name) < 2 for name in names) or (hero.given and hero.words["N"] not in words):
        found.append("names")
    if set(words) - lexicon - {hero.words["N"]}:
        found.append("words")
    return found


def judge(model, tok, generate) -> None:
    rng = random.Random(4)
    lexicon = {word for _ in range(20_000) for word in re.findall(r"[A-Za-z]+", tales.document(rng))}
    unseen = [(kind, deed) for kind in CREATURES for deed in DEEDS if suits(kind, deed) and held_out(kind, deed)]
    kinds = list(CREATURES)

    def prompts(new: bool):
        chosen = rng.sample(unseen, PROMPTS) if new else [(kind, deed_for(kind, rng)) for kind in rng.sample(kinds * 2, PROMPTS - 1)]
        for i, (kind, deed) in enumerate(chosen if new else [("cat", PORTAL), *chosen]):
            hero = Hero(rng, kind)
            if (kind, deed) == ("cat", PORTAL):
                hero.given = hero.adjective_given = False
            prompt = f"Write a short story about {hero.prompt_name()} who {deed.now}."
            yield hero, deed, f"<s>{prompt}" if i % 2 == 0 else "<s>" + turn("user", prompt) + "<|assistant|>\n"

    for new, temperature in itertools.product((False, True), (0, 0.4, 0.7)):
        counts: dict[str, int] = {}
        for i, (hero, deed, prompt) in enumerate(prompts(new)):
            tale, ended = generate(model, tok, prompt, temperature, i)
            wrong = faults(tale, ended, hero, deed, lexicon)
            wrong += [] if flawless(tale, hero.kind, deed) else ["not flawless"]
            for fault in wrong:
                counts[fault] = counts.get(fault, 0) + 1
            if i < 2 or wrong:
                print(f"\n{wrong} {prompt}\n{tale}", flush=True)
        print(f"\n{'pairs never seen' if new else 'pairs seen'}, temperature {temperature}, {PROMPTS} tales: {counts or 'no fault'}\n", flush=True)
