"""The grammar that writes the training text of `word-lstm`: short tales, all our own.

A tale fixes its hero, friend, place, weather and plot once, and every later sentence keeps to them;
that is what the model has to remember. `(a|b)` in a template is a choice, `{x}` one of the tale's
own words. Standard library only.
"""

import random
import re

SHE = {"he": "she", "him": "her", "his": "her", "himself": "herself", "child": "girl"}
HE = {"he": "he", "him": "him", "his": "his", "himself": "himself", "child": "boy"}

# Heroes and friends have separate lists of names, so a name says whether it is a hero's.
HEROES = ["Mira Lena Ada Nora Tilda Luna Zara".split(), "Tomas Emil Bruno Felix Arlo Otto".split()]
FRIENDS = ["Suri Wanda Ines Rosa Freya Olga".split(), "Oskar Hugo Jonas Kito Milo Theo".split()]
KINDS = "fox hare mouse bear badger hedgehog otter squirrel wolf owl raven goose cat dog goat donkey frog mole".split()
PEOPLE = "baker miller fisher weaver smith gardener shepherd sailor potter painter".split()
TRAITS = "brave shy clever curious kind stubborn cheerful quiet proud gentle hungry lazy".split()
PLACES = [
    ("in a", "village", "by the sea"), ("in a", "town", "behind the hills"), ("in a", "valley", "between two mountains"),
    ("on a", "farm", "near the forest"), ("in a", "forest", "full of tall trees"), ("on an", "island", "in a cold lake"),
    ("in a", "castle", "on a high rock"), ("in a", "garden", "behind an old wall"), ("in a", "mill", "beside the river"),
    ("in a", "lighthouse", "at the end of the land"), ("in a", "meadow", "below the mountain"),
    ("in a", "harbour", "where the ships sleep"), ("in a", "cottage", "at the edge of the moor"),
]
THINGS = {
    "lantern": ("copper", "It shone warm and bright"), "key": ("silver", "It was cold and very old"),
    "bell": ("golden", "It rang as clear as water"), "flute": ("wooden", "It could sing like a bird"),
    "ring": ("golden", "It glittered in the sun"), "map": ("torn", "It smelled of salt and smoke"),
    "drum": ("painted", "It sounded like thunder far away"), "boat": ("blue", "It was as light as a leaf"),
    "kite": ("red", "It could climb above the clouds"), "book": ("heavy", "It was full of strange pictures"),
    "mirror": ("round", "It showed the sky in every corner"), "cloak": ("green", "It was soft as moss"),
    "clock": ("broken", "It told the time of another country"), "basket": ("woven", "It was never quite empty"),
    "violin": ("brown", "It wept and laughed at once"), "compass": ("brass", "It always pointed home"),
}
WEATHER = [
    ("spring", "rain"), ("spring", "wind"), ("summer", "heat"), ("summer", "thunder"), ("autumn", "fog"),
    ("autumn", "wind"), ("winter", "snow"), ("winter", "frost"),
]
FOODS = "bread soup honey apples cheese berries pancakes nuts plums porridge".split()

OPENINGS = [
    "Once upon a time there was a {trait} {kind} named {hero} who lived {where} .",
    "Long ago , {where} , there lived a {trait} {kind} named {hero} .",
    "There once was a {trait} {kind} , and {his} name was {hero} . {He} lived {where} .",
    "{Where} lived a {kind} named {hero} . {He} was {trait} , and everybody knew it .",
]
ABOUT = [
    "{He} had one friend , a {ftrait} {fkind} named {friend} .",
    "{His} best friend was {friend} , a {ftrait} {fkind} .",
    "Every (morning|evening) {he} shared {his} {food} with {friend} , the {fkind} next door .",
    "{He} loved {food} , and {he} loved {his} friend {friend} , the {ftrait} {fkind} , even more .",
]

# Each plot: a list of stages; each stage is a list of alternatives.
PLOTS = {
    "lost": [
        ["{He} also had a {colour} {thing} , which {his} (mother|father|grandmother|grandfather) had given {him} . {nature} .",
         "Above all {he} loved {his} {colour} {thing} . {nature} ."],
        ["One {season} (morning|day) the {thing} was gone .", "But one day in {season} {hero} woke up and the {thing} was not there .",
         "Then , in {season} , somebody stole the {thing} ."],
        ["{He} looked under the (bed|table|stairs) and behind the (door|stove) , but {he} could not find the {thing} .",
         "{He} searched the whole {place} , but the {thing} was nowhere .", "{hero} sat down and cried for {his} {thing} ."],
        ["\" Do not be sad , \" said {friend} . \" We will look for your {thing} together . \"",
         "\" I have seen a {thing} , \" said {friend} , \" in the nest of a (magpie|crow) . \"",
         "{friend} came and asked : \" {hero} , why are you crying ? \" \" My {thing} is lost , \" said {hero} ."],
        ["They followed the footprints in the (mud|sand|grass) until they came to a (hollow tree|dark cave|little hut) . There lay the {thing} .",
         "They walked all night through the {weather} , and at (dawn|sunrise) they saw something shine in the (well|ditch|reeds) . It was the {thing} ."],
        ["{hero} took {his} {thing} in {his} arms and thanked {friend} .", "\" My {thing} ! \" cried {hero} , and {he} danced for joy ."],
        ["From that day on {he} never went to sleep without {his} {thing} .", "And whenever {hero} looked at the {thing} , {he} thought of {friend} ."],
    ],
    "storm": [
        ["In {season} {he} liked to watch the (clouds|birds) from the (roof|hill) .", "{He} was not afraid of anything , except {weather} ."],
        ["One {season} night a terrible storm came over the {place} .", "One day in {season} the {weather} came , and it did not stop for seven days ."],
        ["The (roof|door|chimney) of {hero} broke , and the water ran into {his} house .", "The (bridge|fence|barn) fell down , and nobody could leave the {place} ."],
        ["{hero} was (cold|wet|tired) and did not know what to do .", "\" What shall I do ? \" cried {hero} . \" {Weather} is stronger than I am . \""],
        ["But {friend} heard {him} and came with a (rope|ladder|hammer) .", "Then {friend} knocked at the door . \" Come to my house , {hero} , \" {fhe} said . \" We have {food} and a fire . \""],
        ["Together they (worked|built) until the storm was over .", "All night they sat by the fire and told stories , and the storm grew tired and went away ."],
        ["In the morning the sun rose over the {place} , and everything was new .", "When {season} was over , {hero} built a new house , and {friend} helped {him} ."],
        ["Since then {hero} has not been afraid of {weather} .", "And if the storm comes back , {hero} and {friend} will be ready ."],
    ],
    "hunger": [
        ["{season:C} was long that year , and there was no {food} left in the {place} .", "That {season} there was so little {food} that everybody in the {place} went hungry ."],
        ["\" I will go and find {food} , \" said {hero} , and {he} took {his} (bag|stick|hat) and left .", "So {hero} said goodbye to {friend} and set out to look for {food} ."],
        ["{He} walked for three days and found nothing but stones .", "{He} walked through the {weather} until {his} feet hurt ."],
        ["On the third day {he} met an old {stranger} who was (stuck in a bush|sitting by the road|carrying a heavy sack) .",
         "At the edge of the forest {he} met a {stranger} with a (broken leg|thorn in its paw) ."],
        ["\" Help me , \" said the {stranger} , \" and I will help you . \" So {hero} helped the {stranger} at once .",
         "\" Why should I help you ? \" asked {hero} . \" Because nobody else did , \" said the {stranger} . So {hero} helped ."],
        ["The {stranger} thanked {him} and showed {him} a (cave|field|cellar) full of {food} .", "Then the {stranger} gave {him} a small pot . \" It will always be full of {food} , \" said the {stranger} ."],
        ["{hero} ran home and called {friend} , and they ate {food} until they could eat no more .", "{He} carried the {food} home to the {place} , and {friend} wept for joy ."],
        ["Nobody in the {place} was ever hungry again .", "And every {season} {hero} puts a bowl of {food} at the door , for the {stranger} ."],
    ],
    "beast": [
        ["Near the {place} there lived a {beast} , and everybody feared it .", "But under the {place} , in the dark , slept a {beast} ."],
        ["One day in {season} the {beast} came and stole all the {food} .", "One {season} night the {beast} woke up and roared so loud that the windows broke ."],
        ["\" Somebody must talk to the {beast} , \" said {friend} . But nobody dared .", "Everybody hid , but {hero} , who was {trait} , did not hide ."],
        ["So {hero} took a (candle|basket of {food}|long rope) and went to the {beast} alone .", "\" I will go , \" said {hero} . {friend} was afraid for {him} , but {he} went ."],
        ["\" Who are you ? \" roared the {beast} . \" I am {hero} , \" said {hero} , and {his} voice trembled only a little .",
         "The {beast} opened one eye . \" Are you not afraid of me ? \" it asked . \" A little , \" said {hero} ."],
        ["\" Why are you so angry ? \" asked {hero} . \" I am not angry , \" said the {beast} . \" I am (lonely|hungry|cold) . \"",
         "Then {hero} saw that the {beast} had a (thorn|splinter) in its foot , and {he} pulled it out ."],
        ["So {hero} invited the {beast} to supper , and {friend} cooked {food} for three .", "The {beast} wept , and its tears were warm , and they put out the fire in its heart ."],
        ["Since then the {beast} guards the {place} , and {hero} and {friend} sleep well .", "From that day on the {beast} was their friend , and no thief came near the {place} ."],
    ],
    "lostway": [
        ["One day in {season} {hero} went into the (forest|hills|marsh) to gather (wood|mushrooms|herbs) .", "In {season} {hero} wanted to see the (sea|mountains|city) , and {he} left before sunrise ."],
        ["But the {weather} came , and soon {he} could not see the path .", "{He} walked and walked , and when {he} turned around , the path was gone ."],
        ["\" I am lost , \" thought {hero} , and {his} heart beat fast .", "{He} called for {friend} , but only the echo answered ."],
        ["Then {he} saw a small light between the trees . It was a {stranger} with a lantern .", "Then a {stranger} spoke from the branches : \" Where do you want to go ? \""],
        ["\" I want to go home to the {place} , \" said {hero} .", "\" Home , \" said {hero} . \" My friend {friend} is waiting for me . \""],
        ["\" Follow the (river|stars|smoke) , \" said the {stranger} , \" and do not look back . \"", "\" Close your eyes , \" said the {stranger} , \" and listen for the bells . \""],
        ["{hero} did what the {stranger} had said , and at last {he} saw the {place} .", "So {he} went on , step by step , and in the morning {he} stood before the {place} ."],
        ["{friend} had waited all night , with a pot of hot {food} .", "\" There you are ! \" cried {friend} , and they ate {food} together ."],
    ],
    "quarrel": [
        ["One {season} day {hero} and {friend} found a {colour} {thing} . {nature} .", "In {season} a traveller gave {hero} and {friend} a {colour} {thing} . {nature} ."],
        ["\" The {thing} is mine , \" said {hero} . \" No , the {thing} is mine , \" said {friend} .", "Both of them wanted the {thing} , and neither wanted to share ."],
        ["They quarrelled until the {thing} fell into the (river|well|pond) .", "They shouted so loud that a {stranger} came and took the {thing} away ."],
        ["{hero} went home and did not say a word to {friend} for a week .", "For three days {hero} and {friend} did not speak , and the {place} was very quiet ."],
        ["But {he} could not sleep , and {his} {food} had no taste .", "But without {friend} the days were long , and {hero} was lonely ."],
        ["So {hero} went to {friend} and said : \" I am sorry . You may have the {thing} . \"", "At last {he} knocked at the door of {friend} . \" I do not need a {thing} , \" said {hero} . \" I need a friend . \""],
        ["\" I am sorry too , \" said {friend} , and {fhe} smiled .", "{friend} laughed and said : \" I was just coming to tell you the same . \""],
        ["Together they got the {thing} back , and since then it has belonged to both of them .", "The {thing} was never found again , but nobody missed it ."],
    ],
    "gift": [
        ["Soon it was the birthday of {friend} , and {hero} wanted to give {fhim} a {colour} {thing} .", "{friend} had always wished for a {colour} {thing} , and {hero} knew it ."],
        ["But {hero} had no money , not even a single coin .", "But a {thing} was expensive , and {hero} was poor ."],
        ["So in {season} {he} went to work for the {boss} .", "So {he} asked the {boss} for work , and it was a hard {season} ."],
        ["Every day {he} carried (stones|water|sacks) through the {weather} and did not complain .", "{He} worked from dawn to dusk , and at night {his} hands hurt ."],
        ["When {season} was over , the {boss} gave {him} seven coins .", "\" You have worked well , \" said the {boss} , and gave {him} a purse full of coins ."],
        ["{hero} ran to the market and bought the {thing} .", "With the coins {hero} bought the finest {thing} in the market ."],
        ["{friend} opened the parcel . \" A {thing} ! \" {fhe} cried . \" How did you know ? \"", "When {friend} saw the {thing} , {fhe} could not speak . {nature} ."],
        ["They ate {food} and sang until the stars came out .", "And that was the best birthday that {friend} ever had ."],
    ],
    "secret": [
        ["In {season} {hero} found a {colour} {thing} in the (attic|cellar|garden) . {nature} .", "One day the {weather} washed a {colour} {thing} to the door of {hero} . {nature} ."],
        ["At night the {thing} began to speak . \" Take me to the (mountain|lake|tower) , \" it whispered .", "\" Please , \" said the {thing} , \" take me back to the {boss} who made me . \""],
        ["{hero} could not believe {his} ears and told {friend} about it .", "{hero} was so frightened that {he} ran to {friend} in {his} nightshirt ."],
        ["\" We must do what it says , \" said {friend} . So they set out with the {thing} and a bag of {food} .", "{friend} packed some {food} , and they left before the {place} woke up ."],
        ["The way was long , and the {weather} was against them .", "They crossed (two rivers|a desert|an old bridge) , and {hero} carried the {thing} under {his} coat ."],
        ["At the end of the way stood a {boss} with a long white beard . \" You have brought my {thing} , \" said the {boss} .", "There sat an old {boss} , who had been waiting for a hundred years . \" My {thing} , \" said the {boss} softly ."],
        ["\" What do you wish for ? \" asked the {boss} . \" Nothing , \" said {hero} . \" I have {friend} . \"", "The {boss} thanked {hero} and {friend} and gave them a seed in return ."],
        ["Then they went home to the {place} and told nobody .", "And when they came home , the {place} was full of flowers ."],
    ],
}
STRANGERS = "stag heron swan tortoise beggar wizard witch snail salmon beetle".split()
BEASTS = "dragon giant troll serpent monster".split()
MORALS = [
    "And {hero} lived happily {where} for many years .", "And if they have not moved away , {hero} and {friend} still live {where} .",
    "That is the tale of {hero} , the {trait} {kind} .", "So ends the tale of {hero} and {friend} .",
    "And {hero} was {trait} to the end of {his} days .",
]


def pick(template: str, rng: random.Random) -> str:
    return re.sub(r"\(([^()]*)\)", lambda found: rng.choice(found.group(1).split("|")), template)


# The choices that a tale makes once and has to remember: each slot with the words for it.
MEMORY = {
    "hero": sum(HEROES, []), "friend": sum(FRIENDS, []), "kind": [*KINDS, *PEOPLE, "girl", "boy"], "trait": TRAITS,
    "place": [place for _, place, _ in PLACES], "thing": list(THINGS), "season": ["spring", "summer", "autumn", "winter"],
    "food": FOODS, "stranger": STRANGERS, "beast": BEASTS, "boss": PEOPLE,
}  # fmt: skip


def tale(rng: random.Random) -> list[str]:
    """One tale as a list of words and punctuation marks."""
    return tale_and_memory(rng)[0]


def tale_and_memory(rng: random.Random) -> tuple[list[str], dict[str, str]]:
    """One tale, and which word fills each slot of MEMORY."""
    words: dict[str, str] = {}

    def being(prefix: str, name: str, names: list[list[str]], taken: set[str]) -> None:
        she = rng.random() < 0.5
        pronouns = SHE if she else HE
        words[name] = rng.choice([n for n in names[0 if she else 1] if n not in taken])
        for key in ("he", "him", "his"):
            words[prefix + key] = pronouns[key]
        kinds = [k for k in [*KINDS, *PEOPLE, pronouns["child"], pronouns["child"]] if k not in taken]
        words[prefix + "kind"] = rng.choice(kinds)
        words[prefix + "trait"] = rng.choice([t for t in TRAITS if t not in taken])
        taken.update((words[name], words[prefix + "kind"], words[prefix + "trait"]))

    taken: set[str] = set()
    being("", "hero", HEROES, taken)
    being("f", "friend", FRIENDS, taken)
    at, place, detail = rng.choice(PLACES)
    words["place"], words["where"] = place, f"{at} {place} {detail}"
    words["thing"] = rng.choice(list(THINGS))
    words["colour"], words["nature"] = THINGS[words["thing"]]
    words["season"], words["weather"] = rng.choice(WEATHER)
    if words["weather"] in ("rain", "wind", "fog", "heat", "frost", "snow", "thunder"):
        words["weather"] = "the " + words["weather"]
    words["food"] = rng.choice(FOODS)
    words["stranger"], words["beast"] = rng.choice(STRANGERS), rng.choice(BEASTS)
    words["boss"] = rng.choice([p for p in PEOPLE if p not in taken])

    plot = PLOTS[rng.choice(list(PLOTS))]
    stages = [OPENINGS, ABOUT, *plot] + ([MORALS] if rng.random() < 0.7 else [])
    text = " ".join(pick(rng.choice(stage), rng) for stage in stages)
    text = text.replace("the {weather}", "{weather}")

    def fill(found: re.Match) -> str:
        key = found.group(1)
        if key == "season:C":
            return words["season"].capitalize()
        value = words.get(key)
        return value if value is not None else words[key.lower()][0].upper() + words[key.lower()][1:]

    text = re.sub(r"\{([\w:]+)\}", fill, text)
    text = re.sub(r"\b([Aa]) (?=[aeiou])", r"\1n ", text)
    return (text + " <end>").split(), {slot: words[slot] for slot in MEMORY}


if __name__ == "__main__":
    for seed in range(4):
        print(" ".join(tale(random.Random(seed))), "\n")
