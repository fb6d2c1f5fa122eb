"""The grammar that tale-gpt learns from: prompts ("Write a short story about a cat who discovers a
secret portal.") and tales that answer them. Every sentence here is ours.

A tale is an opening (hero, name, home), a habit, five stages of the deed (it begins, a problem, a
helper, the turn, how it ends) and a last sentence that says the deed again. In the templates, (a|b)
is a choice and {slot} is filled from what the tale has fixed: {N} the hero's name, {kind} what the
hero is, {F} the helper, {x} and {y} the deed's own details.
"""

import random
import re
import zlib
from dataclasses import dataclass, field

HE = {"he": "he", "him": "him", "his": "his"}
SHE = {"he": "she", "him": "her", "his": "her"}

# kind: (pronouns, adjectives, verbs of movement, limb, homes with their place, habits). "b" means
# he or she.
CREATURES = {
    "cat": ("b", "curious|small grey|fluffy", "crept|padded", "paw", "house", "chasing moonbeams|napping in the sun"),
    "dog": ("b", "loyal|shaggy|brave", "trotted|ran", "paw", "house", "digging holes|barking at the clouds"),
    "fox": ("b", "clever|young red|sly", "slipped|trotted", "paw", "wild", "listening to the wind|playing tricks"),
    "mouse": ("b", "tiny|brave little|quiet", "scurried|tiptoed", "paw", "house", "collecting crumbs|reading old labels"),
    "rabbit": ("b", "shy|quick|small white", "hopped|ran", "paw", "wild", "counting carrots|hiding in the clover"),
    "bear": ("b", "big brown|gentle|sleepy", "lumbered|walked", "paw", "wild", "eating honey|humming old songs"),
    "wolf": ("b", "lonely|young grey|proud", "ran|loped", "paw", "wild", "singing to the moon|following old tracks"),
    "owl": ("b", "wise|young|serious", "flew|glided", "wing", "wild", "counting stars|asking questions"),
    "hedgehog": ("b", "prickly|shy|round little", "shuffled|waddled", "paw", "wild", "collecting apples|rolling down hills"),
    "frog": ("b", "green|cheerful|small", "hopped|jumped", "foot", "wild", "singing in the rain|catching raindrops"),
    "horse": ("b", "white|proud|gentle", "galloped|trotted", "hoof", "farm", "racing the wind|jumping over fences"),
    "goat": ("b", "stubborn|old|bearded", "climbed|trotted", "hoof", "farm", "eating hats|jumping over fences"),
    "penguin": ("b", "small|clumsy|polite", "waddled|slid", "wing", "ice", "sliding on the ice|counting fish"),
    "elephant": ("b", "gentle|huge grey|young", "marched|walked", "trunk", "wild", "splashing in the river|remembering things"),
    "turtle": ("b", "slow|patient|old", "crawled|plodded", "foot", "sea", "watching the waves|thinking slow thoughts"),
    "squirrel": ("b", "nervous|quick|busy", "leaped|scampered", "paw", "wild", "hiding nuts|climbing tall trees"),
    "dragon": ("b", "green|shy|young", "flew|stomped", "claw", "cave", "warming stones|blowing smoke rings"),
    "unicorn": ("b", "silver|proud|gentle", "galloped|stepped", "hoof", "wild", "dancing at dawn|drinking from clear springs"),
    "robot": ("b", "rusty|small|friendly", "rolled|clanked", "metal hand", "town", "counting screws|watering flowers"),
    "giant": ("b", "kind|lonely|clumsy", "stomped|strode", "hand", "cave", "picking up clouds|knitting huge socks"),
    "fairy": ("b", "tiny|shy|cheerful", "flew|fluttered", "hand", "wild", "painting butterflies|polishing dewdrops"),
    "baker": ("b", "cheerful|round|hardworking", "hurried|walked", "hand", "town", "kneading dough|baking sweet bread"),
    "farmer": ("b", "patient|poor|honest", "walked|marched", "hand", "farm", "talking to the cows|watching the corn grow"),
    "sailor": ("b", "bold|old|cheerful", "walked|marched", "hand", "sea", "tying knots|watching the waves"),
    "pirate": ("b", "bold|grumpy|clumsy", "marched|stomped", "hand", "sea", "singing loud songs|polishing an old sword"),
    "knight": ("b", "brave|young|clumsy", "rode|marched", "hand", "castle", "polishing armour|practising bows"),
    "wizard": ("h", "old|forgetful|wise", "walked|hurried", "hand", "castle", "reading thick books|mixing potions"),
    "witch": ("s", "kind|clever|old", "flew|walked", "hand", "wild", "stirring soup|collecting herbs"),
    "princess": ("s", "brave|curious|stubborn", "ran|walked", "hand", "castle", "climbing towers|asking questions"),
    "king": ("h", "good|lonely|proud", "walked|rode", "hand", "castle", "feeding the swans|counting windows"),
    "gardener": ("b", "patient|quiet|old", "walked|hurried", "hand", "town", "watering flowers|talking to the roses"),
    "clockmaker": ("b", "careful|old|quiet", "walked|hurried", "hand", "town", "polishing small wheels|counting the hours"),
    "painter": ("b", "poor|dreamy|young", "walked|ran", "hand", "town", "mixing colours|drawing the clouds"),
    "girl": ("s", "curious|clever|brave", "ran|tiptoed", "hand", "house", "reading by candlelight|asking questions"),
    "boy": ("h", "quiet|clever|brave", "ran|tiptoed", "hand", "house", "drawing maps|collecting shells"),
}  # fmt: skip

HOMES = {
    "house": [("in a crooked house by the harbour", "harbour"), ("in a small house at the edge of the village", "village"),
              ("above a bookshop in the old town", "town"), ("in a mill beside the river", "valley")],
    "wild": [("in a hollow tree in the forest", "forest"), ("under an old oak in the valley", "valley"),
             ("at the edge of a quiet meadow", "meadow"), ("beside a stream in the forest", "forest")],
    "farm": [("on a farm in the green valley", "valley"), ("in a red barn near the village", "village"), ("on a windy farm above the valley", "valley")],
    "ice": [("on a snowy shore by the harbour", "harbour"), ("in a house of snow near the village", "village")],
    "sea": [("in a lighthouse by the harbour", "harbour"), ("beside the sea near a small village", "village"), ("on a sandy beach by the harbour", "harbour")],
    "cave": [("in a warm cave above the valley", "valley"), ("on a hill behind the village", "village"), ("in a cave deep in the forest", "forest")],
    "town": [("in a narrow street in the old town", "town"), ("in a small shop in the village", "village"), ("behind the clock tower in the town", "town")],
    "castle": [("in a tall tower in the castle", "castle"), ("in a windy castle above the village", "village"), ("in a stone castle near the town", "town")],
}  # fmt: skip

NAMES = {
    "s": "Mira Luna Nora Tilda Ada Lena Zara Ruby Ivy Pearl Clara Stella".split(),
    "h": "Felix Otto Bruno Emil Milo Oscar Leo Hugo Jasper Theo Tomas Arlo".split(),
}
# Names that come only from a prompt ("a girl named Sarah"), so that the model learns to copy a name
# and not to choose a name.
GIVEN = {
    "s": "Sarah Anna Emma Julia Maria Sophie Alice Eva Laura Lucy Marta Nina Olivia Paula Rita Sonja Vera Yara Amelie Bella Carla Elsa Frida Gina Hanna Ines Jana Kira Lotte Mina".split(),
    "h": "Peter Paul Anders Ben Carlos David Erik Finn Georg Hans Ivan Jakob Karl Lukas Max Nils Omar Pavel Robin Samuel Tim Uwe Victor Willi Adam Bilal Chen Daniel Elias Fred".split(),
}
FRIEND_NAMES = {
    "s": "Rosa Greta Hilda Olive Bess Dora Wanda Flora".split(),
    "h": "Walter Pip Boris Anton Gus Henry Basil Rufus".split(),
}
FRIENDS = "owl mouse turtle crow hedgehog goat donkey beetle heron goose sparrow snail badger toad otter squirrel".split()
FRIEND_ADJECTIVES = "old wise tiny cheerful sleepy gentle clever kind".split()


@dataclass
class Deed:
    """What a tale is about, its verb in three forms, and the sentences of its five stages."""

    base: str
    now: str
    past: str
    stages: list[list[str]]
    x: list[str] = field(default_factory=lambda: [""])
    y: list[str] = field(default_factory=lambda: [""])
    without: tuple[str, ...] = ()  # heroes that it does not suit


DEEDS = [
    Deed(
        "discover a secret portal", "discovers a secret portal", "discovered a secret portal",
        [
            ["One (rainy|quiet|windy) (morning|evening|night), {N} saw a (blue|golden|green) light behind {y}. It was a secret portal!",
             "One (morning|evening|night), {N} {went} past {y} and felt a warm wind. There, behind {y}, was a secret portal.",
             "One day {N} touched {y} with one {paw}, and it began to glow. Behind it, {he} discovered a secret portal."],
            ["{N} took a deep breath and stepped through. On the other side was {x}, but when {he} turned around, the portal had closed.",
             "The portal led to {x}. {N} {went} on and on, until {he} could not find the way back."],
            ["Then {friend} came along. \"The portal opens only for those who (sing|tell the truth|share),\" said {F}.",
             "There {he} met {friend}. \"I know the portal,\" said {F}. \"It opens again when the (moon|sun) rises.\""],
            ["{N} thanked {F} and did as {fhe} had said, and the portal opened again.",
             "So {N} and {F} waited together, and at last the secret portal began to shine once more."],
            ["{N} jumped through and landed safely behind {y}, with a (silver leaf|tiny star|glass feather) in {his} {paw}.",
             "Soon {N} was home again, but every full moon {he} went back through the portal to visit {F}."],
        ],
        x="a city of glass|a forest of silver trees|a land of floating islands|a garden full of singing flowers|a world made of clouds".split("|"),
        y="the old bookcase|the garden wall|the mossy fountain|the broken mirror|the hollow oak".split("|"),
    ),
    Deed(
        "find a lost map", "finds a lost map", "found a lost map",
        [
            ["One day {N} found a lost map inside {y}. A red line led to {x}.",
             "One (windy|grey) morning, {N} opened {y}, and out fell a lost map. It showed the way to {x}."],
            ["{N} followed the map for (two|three) days, but then the rain washed half of the line away.",
             "{He} {went} over hills and bridges, but half of the map was missing, and soon {he} did not know where to go."],
            ["By the road sat {friend}. \"I have the other half of that map,\" said {F}.",
             "\"May I see the map?\" asked {friend}. {F} held it up to the light, and there were secret letters on it."],
            ["Together {N} and {F} read the map, and before sunset they stood in front of {x}.",
             "Now the map was easy to read, and {F} showed {N} the way to {x}."],
            ["There they found no gold, but a (letter|picture) from the one who had drawn the map, and {N} kept it for ever.",
             "{N} drew everything that {he} had seen on the map, so that nobody would ever lose the way again."],
        ],
        x="a hidden lake|an old temple|a forgotten garden|a tower without a door".split("|"),
        y="an old boot|a green bottle|a dusty drawer|a broken drum".split("|"),
    ),
    Deed(
        "learn to fly", "learns to fly", "learned to fly",
        [
            ["{N} had only one wish: {he} wanted to fly like {x}.", "Every day {N} watched {x} in the sky. \"I want to learn to fly,\" {he} said."],
            ["{He} jumped from {y} and flapped as hard as {he} could, but {he} fell straight into the mud.",
             "First {he} tried it from {y}, but {he} could not fly at all, and everyone laughed."],
            ["Only {friend} did not laugh. \"You must not fight the wind,\" said {F}. \"You must trust it.\"",
             "\"I will teach you to fly,\" said {friend}. Every morning {F} and {N} practised on the hill."],
            ["One (bright|windy) morning {N} closed {his} eyes, trusted the wind, and rose into the air.",
             "At last the right wind came. {N} ran, jumped, and did not fall. {He} was flying!"],
            ["{N} flew over the whole {place}, and {F} cheered from below.",
             "High above the {place} {he} met {x}, and they flew together until the stars came out."],
        ],
        x="the swallows|the wild geese|the kites|the seagulls".split("|"),
        y="a haystack|the roof|a tall rock|the garden gate".split("|"),
        without=("fairy", "witch", "owl", "dragon"),
    ),
    Deed(
        "befriend a ghost", "befriends a ghost", "befriended a ghost",
        [
            ["One night {N} heard somebody crying in {x}. It was a small, pale ghost.",
             "In {x} there was a ghost, and everyone in the {place} was afraid of it. One night {N} went there all alone."],
            ["\"Go away!\" cried the ghost. \"Everyone runs away from me.\" But {N} did not run, although {his} heart beat fast.",
             "The ghost rattled its chains and howled. {N} trembled, but {he} said, \"Good evening, ghost. Are you lonely?\""],
            ["{N} asked {friend} what to do. \"A ghost is only somebody who has lost {y},\" said {F}.",
             "The next day {friend} told {him} a secret. \"Long ago the ghost lost {y},\" said {F}."],
            ["So {N} searched all night, and at dawn {he} brought the ghost {y} that it had lost.",
             "{N} and {F} looked everywhere, and at last they found {y} and gave it to the ghost."],
            ["The ghost smiled for the first time in a hundred years, and from then on {N} and the ghost were friends.",
             "\"Thank you, my friend,\" said the ghost, and every night it came to play with {N}."],
        ],
        x="the old attic|the empty castle|the dark cellar|the ruined mill".split("|"),
        y="a music box|a little bell|a red scarf|a wooden doll".split("|"),
    ),
    Deed(
        "build a boat", "builds a boat", "built a boat",
        [
            ["One spring {N} decided to build a boat and sail to {x}.", "{N} dreamed of {x}, far across the water. \"I will build a boat,\" {he} said."],
            ["{He} worked for weeks with {y}, but on the first day the boat filled with water and sank.",
             "{He} made it out of {y}, but the boat leaked, and the others laughed at it."],
            ["Then {friend} looked at the boat. \"You need (wax|tar) for the holes,\" said {F}, \"and somebody to help you.\"",
             "\"I know how to mend a boat,\" said {friend}, and {F} stayed to help."],
            ["Together {N} and {F} built the boat again, and this time it floated like a swan.",
             "They worked day and night. When the boat was ready, {N} painted it (blue|red|yellow) and named it after {F}."],
            ["So {N} and {F} sailed to {x}, and the boat carried them safely there and home again.",
             "With a fresh wind in the sail, the boat brought them to {x}, and they danced for joy."],
        ],
        x="the island of birds|the far shore|the place where the sun rises|the island of stories".split("|"),
        y="old doors|fallen branches|barrels and rope|walnut wood".split("|"),
    ),
    Deed(
        "save the village", "saves the village", "saved the village",
        [
            ["One autumn it rained for ten days, and the river rose higher and higher above the village.",
             "One night {N} woke up and saw that {x} was broken. The water was coming towards the village!"],
            ["{N} ran from door to door and called, but everyone was asleep and nobody in the village heard {him}.",
             "\"The village is in danger!\" cried {N}, but nobody believed {him}."],
            ["Only {friend} listened. \"Ring {y}!\" said {F}. \"Everyone will hear it.\"",
             "\"What can we do?\" {he} asked {friend}. \"Wake them with {y},\" said {F}."],
            ["{N} {went} up the hill and rang {y} with all {his} strength, until everyone in the village was awake.",
             "So {N} and {F} rang {y}, and one light after another went on in the village."],
            ["Together they carried stones and sand to {x}, and when the sun rose, the village was safe.",
             "They closed {x} just in time, and the whole village thanked {N}."],
        ],
        x="the dam|the old wall|the gate by the river".split("|"),
        y="the church bell|the great gong|the ship's bell".split("|"),
    ),
    Deed(
        "lose a golden key", "loses a golden key", "lost a golden key",
        [
            ["{N} had a golden key that opened {x}. But one morning the golden key was gone.",
             "{He} always carried a golden key, for it opened {x}. One day, on the way home, {N} lost it."],
            ["{N} looked under every stone and behind every door, but the golden key was nowhere.",
             "{He} searched the whole {place} for the key until {his} eyes hurt, and then {he} sat down and wept."],
            ["\"Do not cry,\" said {friend}. \"I saw something shine in {y},\" said {F}.",
             "{friend:C} asked why {he} was so sad. Then {F} said, \"Keys like to hide in {y}.\""],
            ["So {N} and {F} looked in {y}, and there, in the very middle, lay the golden key.",
             "{N} {went} there at once, and {F} held the lantern. The golden key was in {y}!"],
            ["{N} opened {x} with the golden key and shared everything inside with {F}.",
             "Since then {N} has worn the golden key on a ribbon, and {F} has a copy of it."],
        ],
        x="a box of songs|the garden of roses|the oldest clock in the {place}|a chest of letters".split("|"),
        y="the nest of a magpie|the deep well|the fishpond|the flour barrel".split("|"),
    ),
    Deed(
        "travel to the moon", "travels to the moon", "travelled to the moon",
        [
            ["Every night {N} looked up at the moon. \"One day I will travel there,\" {he} said.",
             "One clear night the moon hung so low that {N} wanted to travel to it."],
            ["{N} built {x}, but it rose only as high as the roof and fell down again.",
             "{He} tried it with {x}, but the moon was much too far away."],
            ["Then {friend} came by. \"The moon likes {y},\" said {F}. \"Take some with you, and it will come to meet you.\"",
             "\"I was on the moon once,\" said {friend}. \"Bring {y},\" said {F}, \"and you will be light enough.\""],
            ["So {N} packed {y}, and this time {x} carried {him} up and up, all the way to the moon.",
             "{N} took {y} along, climbed into {x}, and landed softly on the moon before midnight."],
            ["On the moon {he} danced with {his} own shadow, and in the morning {he} brought {F} a piece of moonlight.",
             "The moon was quiet and white. {N} waved down to {F} and was back home for breakfast."],
        ],
        x="a basket of balloons|a paper rocket|a ship with silver wings".split("|"),
        y="fresh pancakes|a lullaby|warm milk|seven dreams".split("|"),
    ),
    Deed(
        "meet a dragon", "meets a dragon", "met a dragon",
        [
            ["One day {N} {went} into {x} and met a dragon. It was as big as a house.",
             "Everyone said that a dragon lived in {x}. One morning {N} went to see, and there it was."],
            ["\"I will eat you!\" roared the dragon, and smoke came out of its nose. {N} could hardly breathe.",
             "The dragon opened one yellow eye and growled. {N} wanted to run, but {he} could not move."],
            ["But {friend} whispered, \"The dragon is not angry. It has {y},\" said {F}.",
             "On the dragon's tail sat {friend}. \"Do not be afraid,\" said {F}. \"The dragon only has {y}.\""],
            ["So {N} went closer, and with a gentle {paw} {he} helped the dragon as well as {he} could.",
             "\"Let me help you,\" said {N}, and {he} took care of the dragon all day long."],
            ["The dragon wept for joy, and that evening it carried {N} and {F} home through the clouds.",
             "From then on the dragon lit the lamps of the {place} every evening, and nobody feared it any more."],
        ],
        x="the dark cave|the burnt forest|the black mountain".split("|"),
        y="a toothache|a thorn in its foot|a terrible cold|no friends".split("|"),
        without=("dragon",),
    ),
    Deed(
        "plant a magic seed", "plants a magic seed", "planted a magic seed",
        [
            ["One spring a traveller gave {N} a magic seed. \"Plant it and wait,\" said the traveller.",
             "In an old sack {N} found a magic seed that glowed like a tiny lamp. {He} planted it in {x}."],
            ["{N} watered the seed every day, but nothing grew in {x}, and {he} became sad.",
             "Weeks went by. The magic seed slept in {x}, and nobody believed that it would ever grow."],
            ["Then {friend} said, \"A magic seed does not need water. It needs {y},\" said {F}.",
             "\"Have you tried {y}?\" asked {friend}. \"That is what such a seed likes best,\" said {F}."],
            ["So {N} gave the magic seed {y} every evening, and one morning a green leaf came out of the ground.",
             "{N} tried it that very night, and before dawn the seed had grown into a tree."],
            ["The tree grew up to the clouds, and on its branches hung (golden pears|little bells|paper lanterns) for everyone in the {place}.",
             "Soon the whole {place} sat in the shade of the tree, and {N} and {F} sat at the very top."],
        ],
        x="a clay pot|the corner of the garden|an old bucket".split("|"),
        y="a kind word|music|a good story|a little laughter".split("|"),
    ),
    Deed(
        "be afraid of the dark", "is afraid of the dark", "lost {his} fear of the dark",
        [
            ["But there was one thing that {N} told nobody: {he} was afraid of the dark.",
             "In the daytime {N} was brave, but {he} was afraid of the dark, and every night {he} lit {x}."],
            ["One night the wind blew out {x}. It was so dark that {N} could not see {his} own {paw}.",
             "One evening {x} went out, and the dark was everywhere. {N} hid and did not dare to move."],
            ["Then {he} heard a voice. \"I like the dark,\" said {friend}. \"Come outside,\" said {F}, \"and I will show you {y}.\"",
             "Out of the dark came {friend}. \"Have you never seen {y}?\" asked {F}."],
            ["{N} took {F} along with {him} and stepped into the dark, and there, above the {place}, {he} saw {y}.",
             "Slowly {N} {went} out into the night with {F}. And there was {y}, more beautiful than any lamp."],
            ["\"Only in the dark can you see it,\" said {F}, and {N} was not afraid any more.",
             "Since then {N} has not needed {x}, for {he} knows what the dark is hiding."],
        ],
        x="a candle|the little lamp|a lantern".split("|"),
        y="the fireflies|the falling stars|the northern lights|the Milky Way".split("|"),
    ),
    Deed(
        "win a race", "wins a race", "won a race",
        [
            ["One day there was a great race around {x}, and {N} wanted to win it.",
             "Every summer there was a race to {x}. {N} had always come last."],
            ["The {y} was the fastest of all. \"You will never win,\" said the {y} and laughed.",
             "{N} trained for weeks, but the {y} was always faster, and {he} almost gave up."],
            ["\"Do not look at the others,\" said {friend}. \"Look at the road,\" said {F}, \"and breathe slowly.\"",
             "Then {friend} gave {him} some advice. \"Begin slowly,\" said {F}, \"and do not stop.\""],
            ["On the day of the race {N} did just that. The {y} ran ahead, but soon it was tired and sat down.",
             "The race began, and the {y} was far ahead. But {N} remembered the words of {F} and went on, step by step."],
            ["{N} was the first to cross the line. {He} had won the race, and {F} threw flowers into the air.",
             "{N} won the race by the length of one {paw}, and {he} shared the prize with {F}."],
        ],
        x="the lake|the old tower|the three hills".split("|"),
        y="hare|deer|racing dog|ostrich".split("|"),
    ),
    Deed(
        "learn to sing", "learns to sing", "learned to sing",
        [
            ["{N} loved music, but {he} could not sing. When {he} tried, {x} fell from the walls.",
             "More than anything, {N} wanted to learn to sing. But {his} voice sounded like {x}."],
            ["Everyone in the {place} covered their ears, and so {N} stopped and was silent for a whole year.",
             "\"Please stop!\" they all cried. {N} went away to {y}, where nobody could hear {him} sing."],
            ["But {friend} heard {him}. \"You sing with your throat,\" said {F}. \"You must sing with your heart.\"",
             "There {he} met {friend}, who knew every song in the world. \"I will teach you to sing,\" said {F}."],
            ["Every evening {N} and {F} practised at {y}, one note after another, until the song was clear and warm.",
             "{N} listened to {F}, to the wind and to the rain, and slowly {he} learned to sing."],
            ["On the feast day {N} sang for the whole {place}, and nobody covered their ears. Some even wept.",
             "When {N} came home and sang, the birds were silent and listened, and {F} was very proud."],
        ],
        x="old spoons|a broken gate|rusty pans".split("|"),
        y="the waterfall|the lonely beach|the old bridge".split("|"),
    ),
    Deed(
        "bake a giant cake", "bakes a giant cake", "baked a giant cake",
        [
            ["For the birthday of {x}, {N} wanted to bake a giant cake.", "One day {N} decided to bake a giant cake, as high as a tower, for {x}."],
            ["{He} needed a hundred eggs and a mountain of flour, but there was no oven big enough for the giant cake.",
             "{N} mixed and stirred all day, but then {he} saw that there was no {y} left, not even a spoonful."],
            ["\"I can help you,\" said {friend}. {F} knew where to find everything that a giant cake needs.",
             "Then {friend} called all the neighbours. \"Each of us will bring something,\" said {F}."],
            ["So {N} and {F} baked the cake in the old bell tower, and the whole {place} smelled of {y}.",
             "Everyone brought a little {y}, and all night long {N} baked one layer after another."],
            ["The giant cake was so big that {x} needed a ladder to eat it, and there was enough for everyone.",
             "In the morning the giant cake was ready. {N} gave the first piece to {F} and the second to {x}."],
        ],
        x="the old teacher|the queen|the postman|the youngest child of the {place}".split("|"),
        y="sugar|honey|cinnamon|chocolate".split("|"),
    ),
    Deed(
        "catch a falling star", "catches a falling star", "caught a falling star",
        [
            ["One night {N} saw a falling star and caught it in {x}.", "One summer night a star fell from the sky. {N} ran and caught the falling star in {x}."],
            ["But the star grew weaker and weaker. \"I want to go home,\" it whispered.",
             "The star shone beautifully, but it was cold and sad, and its light was going out."],
            ["{N} asked {friend} for help. \"A star belongs in the sky,\" said {F}. \"Take it up to {y}.\"",
             "\"It is homesick,\" said {friend}. \"You must carry it to {y},\" said {F}, \"before the sun rises.\""],
            ["So {N} {went} all night with the star in {x}, until {he} stood on {y}.",
             "{N} did not want to let the star go, but {he} carried it to {y}, and {F} went with {him}."],
            ["There {he} opened {his} {paw}, and the star flew back into the sky. It still winks at {N} every night.",
             "\"Goodbye, little star,\" said {N}. The star rose into the sky, and for one moment the whole {place} was bright."],
        ],
        x="an old hat|a glass jar|a butterfly net|a soup pot".split("|"),
        y="the highest hill|the roof of the tower|the top of the mountain".split("|"),
    ),
    Deed(
        "get lost in the forest", "gets lost in the forest", "got lost in the forest",
        [
            ["One day {N} went to gather {x}, and {he} went deeper and deeper into the forest.",
             "One foggy morning {N} left the path to look for {x}, and soon {he} was lost in the forest."],
            ["When it grew dark, every tree looked the same. \"I am lost,\" thought {N}, and {he} was very cold.",
             "{He} called and called, but in the forest only the echo answered."],
            ["Then {he} saw a {y} between the trees. It belonged to {friend}. \"Are you lost?\" asked {F}.",
             "Suddenly {friend} stood in front of {him}. \"Nobody stays lost in my forest,\" said {F}. \"Follow my {y}.\""],
            ["{N} followed {F} and the {y} through the forest, over roots and under branches.",
             "So they walked behind the {y}, and {F} told such good stories that {N} forgot to be afraid."],
            ["In the morning {N} came out of the forest and saw {his} home again. {He} gave {F} half of the {x}.",
             "At sunrise they reached the last tree, and there lay the path home. \"Thank you, {F},\" said {N}."],
        ],
        x="mushrooms|blackberries|firewood|chestnuts".split("|"),
        y="lantern|blue lamp|small torch".split("|"),
    ),
    Deed(
        "find a hidden treasure", "finds a hidden treasure", "found a hidden treasure",
        [
            ["One day, under {x}, {N} found a hidden treasure: a chest full of {y}.",
             "{N} was digging under {x} when {he} hit something hard. It was a hidden treasure, a box of {y}."],
            ["{He} hid the treasure at home and guarded it day and night, until {he} was tired and lonely.",
             "But soon {N} was afraid of thieves. {He} could not sleep any more because of the treasure."],
            ["\"What is a treasure good for if nobody sees it?\" asked {friend}. {N} thought long about what {F} had said.",
             "Then {friend} knocked at the door. \"You look sad,\" said {F}. \"Is your treasure heavy?\""],
            ["So {N} opened the chest and gave {y} to everyone in the {place}, and {F} got the finest piece.",
             "The next morning {N} carried the treasure to the market and shared {y} with the whole {place}."],
            ["That night {N} slept well again, and {he} knew that {F} was the greatest treasure of all.",
             "The chest was empty, but {his} house was full of friends."],
        ],
        x="the old bridge|a crooked apple tree|the stone stairs|the sand of the shore".split("|"),
        y="golden coins|silver spoons|pearls|coloured glass".split("|"),
    ),
    Deed(
        "wake a sleeping giant", "wakes a sleeping giant", "woke a sleeping giant",
        [
            ["Near the {place} there was a hill that snored. One day {N} dropped {x} on it and woke a sleeping giant.",
             "One morning {N} played so loudly with {x} that {he} woke a sleeping giant."],
            ["The giant stood up and yawned, and the roofs of the {place} flew away.",
             "\"Who woke me?\" roared the giant, and the ground trembled. Everyone ran away."],
            ["\"A giant who cannot sleep is a sad giant,\" said {friend}. \"He needs {y},\" said {F}.",
             "{N} did not run. {He} asked {friend} what to do. \"Bring him {y},\" said {F}."],
            ["So {N} {went} up to the giant's ear. \"I am sorry that I woke you,\" {he} said. \"I have brought you {y}.\"",
             "All day long {N} and {F} worked, and in the evening they brought the giant {y}."],
            ["The giant smiled, lay down, and was soon asleep again. Now everyone in the {place} walks on tiptoe.",
             "\"That is all I wanted,\" said the giant, and he fell asleep with {N} on his shoulder."],
        ],
        x="a big drum|a pile of pots|a trumpet|an iron bell".split("|"),
        y="a soft pillow|a lullaby|a blanket of leaves|a very long story".split("|"),
        without=("giant",),
    ),
    Deed(
        "write a letter to the sea", "writes a letter to the sea", "wrote a letter to the sea",
        [
            ["One evening {N} wrote a letter to the sea. \"Dear sea,\" {he} wrote, \"please give me back {x}.\"",
             "{N} had lost {x} in the waves. So {he} sat down and wrote a letter to the sea."],
            ["{He} put the letter into a bottle and threw it into the water, but the waves carried it back again and again.",
             "Every day {he} waited on the shore for an answer to the letter, but the sea was silent."],
            ["Then {friend} read the letter. \"You forgot to say please and thank you,\" said {F}.",
             "\"The sea cannot read in the daytime,\" said {friend}. \"Give me your letter,\" said {F}, \"and I will take it out at night.\""],
            ["So the letter was sent once more, and that night the sea was calm and bright, as if it were reading.",
             "{N} wrote the letter again with {y}, and {F} brought it to the deepest place in the sea."],
            ["In the morning {x} lay on the sand, and beside it a shell in which the sea said, \"Thank you for the letter.\"",
             "The next day a wave laid {x} at the feet of {N}. Since then {he} writes to the sea every week."],
        ],
        x="the red kite|the little ship|the silver ring|the best hat".split("|"),
        y="blue ink|the feather of a gull|large, friendly letters".split("|"),
    ),
    Deed(
        "repair an old clock", "repairs an old clock", "repaired an old clock",
        [
            ["In the middle of the {place} stood an old clock that had stopped at {x}. {N} wanted to repair it.",
             "One day the old clock stopped at {x}, and from then on nobody in the {place} knew when to get up."],
            ["{N} climbed inside the old clock and turned every wheel, but it did not tick.",
             "{He} oiled it and shook it, but the old clock stayed silent. Something was missing."],
            ["Behind a wheel sat {friend}. \"I have lived in this clock for years,\" said {F}. \"It is missing {y}.\"",
             "\"Listen,\" said {friend}. \"The clock is not broken. It only wants {y} back,\" said {F}."],
            ["{N} and {F} searched the whole {place} for {y}, and they found it in the pocket of the mayor.",
             "So {N} went to look for {y}, found it under the stairs, and put it in its place."],
            ["Tick, tock, said the old clock, and everyone cheered. {N} was allowed to ring the first hour.",
             "The old clock struck so loudly that the pigeons flew up, and {N} and {F} danced to its ticking."],
        ],
        x="midnight|half past three|noon|five to seven".split("|"),
        y="a tiny screw|its smallest wheel|its spring|its golden hand".split("|"),
    ),
    Deed(
        "become invisible", "becomes invisible", "became invisible",
        [
            ["One day {N} drank from {x} and became invisible, from head to toe.",
             "One morning {N} took a sip from {x}, and suddenly {he} was invisible."],
            ["At first it was fun to be invisible. {He} stole {y} and laughed. But nobody said good morning to {him} any more.",
             "{N} took {y} from the market, and nobody saw it. But in the evening {he} was lonely, for an invisible {kind} has no friends."],
            ["Only {friend} noticed {him}. \"I can smell you,\" said {F}. \"Do you want to be seen again?\"",
             "Then {friend} bumped into {him}. \"Whoever is invisible must do good deeds,\" said {F}, \"until somebody says thank you.\""],
            ["So {N} gave back {y} and helped everyone in secret: {he} swept the streets and mended the roofs.",
             "That night {N} brought {y} back and helped {F} to repair the fence."],
            ["\"Thank you, whoever you are!\" they called. And at that moment {N} was not invisible any longer.",
             "\"Thank you,\" said {F}, and slowly {N} could see {his} own {paw} again. {He} was never invisible after that."],
        ],
        x="a strange spring|a cup of purple tea|a bottle without a label".split("|"),
        y="the biggest pie|the best apples|the basket of cherries|the round cheese".split("|"),
    ),
    Deed(
        "talk to the trees", "can talk to the trees", "talked to the trees",
        [
            ["{N} had a secret: {he} could talk to the trees. {x:C} told {him} the news every morning.",
             "One day {x} said good morning, and {N} found out that {he} could talk to the trees."],
            ["One evening the trees were afraid. \"Tomorrow {y} will come and cut us down,\" they said.",
             "But in autumn the trees were sad. \"{y:C} want to build a road here,\" they told {N}."],
            ["{N} ran to {friend}. \"Then the trees must speak to everyone,\" said {F}. \"You must tell them how.\"",
             "\"Nobody will believe that I talk to the trees,\" said {N}. \"I believe you,\" said {friend}, and {F} had a plan."],
            ["When {y} came, {N} repeated every word that the trees said, and {F} called the whole {place} to listen.",
             "The next day {N} told {y} what the trees had seen: their grandparents, their first steps, their weddings."],
            ["Then they put down their axes, and {x} dropped its best leaf on the head of {N}.",
             "They all grew quiet and went home, and the trees sang until it was night."],
        ],
        x="the old oak|the tall birch|the apple tree".split("|"),
        y="the woodcutters|the builders|the men from the city".split("|"),
    ),
    Deed(
        "open a library", "opens a library", "opened a library",
        [
            ["{N} had so many books that {he} opened a library in {x}.", "There was not a single library in the {place}. So {N} opened one in {x}."],
            ["But nobody came to the library. \"We have no time to read,\" they said.",
             "Day after day {N} sat in the library and waited, but nobody borrowed a book."],
            ["Then {friend} came in. \"I cannot read,\" said {F}. \"Will you read to me?\"",
             "One rainy day {friend} looked in at the door. \"Have you a book about {y}?\" asked {F}."],
            ["{N} read a story about {y}, and {F} laughed so loudly that everyone wanted to know why.",
             "So {N} opened a book about {y} and read aloud, and one listener after another came into the library."],
            ["Soon the library was full every evening, and {F} could read every book alone.",
             "Now the lamp in the library burns until midnight, and {N} is never alone there."],
        ],
        x="an old boat|a hollow tree|an empty barn|a red tent".split("|"),
        y="pirates|whales|clouds|a flying pig".split("|"),
    ),
    Deed(
        "find a talking book", "finds a talking book", "found a talking book",
        [
            ["One day, in {x}, {N} found a talking book. \"At last,\" said the book, \"somebody opens me.\"",
             "One rainy day {N} took a dusty book from {x}. \"Be careful with my pages,\" said the talking book."],
            ["But the last page of the book was missing. \"Without it I do not know how I end,\" the book said sadly.",
             "The book told wonderful stories, but it always stopped before the end, because {y} had eaten its last page."],
            ["\"I know what to do,\" said {friend}. \"You must write the end yourself,\" said {F}.",
             "{N} showed the book to {friend}. \"Every talking book needs somebody who writes,\" said {F}."],
            ["So {N} took a pen in {his} {paw} and wrote a new ending, and the book read it aloud.",
             "All night long {N} and {F} thought of an ending, and in the morning they wrote it down."],
            ["\"That is the best ending I have ever had,\" said the talking book, and it told the tale of {N} ever after.",
             "The talking book was so happy that its letters danced, and it never left {N} again."],
        ],
        x="a market stall|a forgotten chest|the highest shelf|the cellar".split("|"),
        y="a moth|a goat|a hungry mouse|the damp".split("|"),
    ),
    Deed(
        "cross the desert", "crosses the desert", "crossed the desert",
        [
            ["Behind the mountains lay a great desert, and beyond it {x}. One day {N} set out to cross the desert.",
             "{N} wanted to see {x}, and so {he} had to cross the desert."],
            ["The sun burned, and after (two|three) days {y} was empty. {N} could hardly lift one {paw}.",
             "In the middle of the desert a sandstorm came and carried {y} away."],
            ["In the shade of a rock lay {friend}. \"Walk at night,\" said {F}, \"and follow the stars.\"",
             "Then {he} found {friend}, who was thirsty too. {N} shared {his} last drop, and {F} said, \"Now I will show you the well.\""],
            ["They crossed the desert by the light of the moon, and {F} found water where nobody else would have looked.",
             "{N} and {F} went on together, from star to star, and the sand was cool under them."],
            ["On the last morning the desert ended, and there was {x}, green and shining.",
             "At last they stood before {x}. \"We have crossed the desert,\" said {N}, and {he} drank for a very long time."],
        ],
        x="the blue city|the sea of palms|the market of wonders".split("|"),
        y="the water bottle|the basket of food|the little cart".split("|"),
    ),
    Deed(
        "make a wish", "makes a wish", "made a wish",
        [
            ["One day {N} threw a coin into {x} and made a wish: {he} wished for {y}.",
             "In {x} {N} caught a small golden fish. \"Let me go,\" said the fish, \"and you may make a wish.\" {N} wished for {y}."],
            ["The wish came true, and there was {y} everywhere, until nobody in the {place} could open a door.",
             "At once the wish came true. But {he} got so much {y} that {he} could not even see the sky."],
            ["\"Be careful what you wish for,\" said {friend}. \"You may make one more wish,\" said {F}. \"Think well.\"",
             "{N} did not know what to do. \"What do you really want?\" asked {friend}. And {F} waited for an answer."],
            ["{N} thought all night. Then {he} went to {x} and wished that everything would be as it was before.",
             "\"I wish for a friend,\" {he} said at last, and {he} made this wish very quietly."],
            ["And so it was. Only {F} was still there, and that was better than any wish.",
             "Then all the {y} was gone, and {F} sat down beside {him} and stayed."],
        ],
        x="the old well|the round pond|the river".split("|"),
        y="pudding|snow|golden straw|wool".split("|"),
    ),
    Deed(
        "tame a storm", "tames a storm", "tamed a storm",
        [
            ["One autumn a wild storm came to the {place}. It tore up {x} and would not leave.",
             "For seven days a storm had raged over the {place}, and it had blown away {x}."],
            ["Everyone hid, but {N} {went} out into the storm. It threw {him} into a hedge.",
             "\"Stop!\" cried {N}, but the storm only howled and laughed."],
            ["In the hedge sat {friend}. \"A storm is like a young horse,\" said {F}. \"You tame it with {y}.\"",
             "\"Nobody has ever been kind to the storm,\" said {friend}. \"Try {y},\" said {F}."],
            ["So {N} stood on the hill and tried {y}. The storm came closer, sniffed, and grew quiet.",
             "{N} was afraid, but {he} tried {y}, again and again, until the storm lay down at {his} feet."],
            ["Now the storm was tame. It turned the mill, dried the washing, and slept on the roof of {N}.",
             "The tame storm brought back {x}, and every Sunday {N} and {F} rode on it across the sky."],
        ],
        x="the fences|the washing|the market tents|the haystacks".split("|"),
        y="a soft song|patience|a friendly whistle|a kind word".split("|"),
    ),
    Deed(
        "paint the night sky", "paints the night sky", "painted the night sky",
        [
            ["One night the sky was grey and empty. {N} took {x} and decided to paint the night sky.",
             "\"The night sky is much too dark,\" said {N}, and {he} went to fetch {x}."],
            ["But the sky was so high that {he} could not reach it, not even from {y}.",
             "{He} climbed up to {y} and stretched out {his} {paw}, but the night sky was still too far away."],
            ["\"You must paint the lake,\" said {friend}. \"The sky looks into it every night,\" said {F}, \"like into a mirror.\"",
             "Then {friend} said, \"Let me help you,\" and {F} asked the wild geese to carry the colours."],
            ["So {N} painted all night, red and gold and violet, and {F} held the bucket.",
             "Stroke by stroke {N} painted, and high above, the night sky began to glow."],
            ["When everyone in the {place} woke up, they saw a night sky full of colours, and nobody went back to bed.",
             "Since then there are colours in the night sky, and {F} says that the green ones are the most beautiful."],
        ],
        x="a broom and ten buckets|the longest brush|a box of colours".split("|"),
        y="the church tower|the tallest tree|the roof of the mill".split("|"),
    ),
    Deed(
        "solve a mystery", "solves a mystery", "solved a mystery",
        [
            ["One morning all the {x} in the {place} were gone. It was a great mystery.",
             "Every night somebody took {x} from the houses of the {place}. \"I will solve this mystery,\" said {N}."],
            ["{N} looked for clues, but there was only {y} on the ground, and that made the mystery even bigger.",
             "{He} asked everyone, but nobody had seen anything. The only clue was {y}."],
            ["{N} showed it to {friend}. \"I have seen that before,\" said {F}, \"up in the tower.\"",
             "\"Two can see more than one,\" said {friend}, and so {F} and {N} kept watch together."],
            ["At midnight {N} and {F} hid behind the door, and then they saw the thief: it was a magpie with a very cold nest.",
             "They followed the clue up many stairs, and there sat a young magpie who was making a bed of {x}."],
            ["The mystery was solved. {N} gave the magpie a warm blanket, and in the morning all the {x} were back.",
             "\"I only wanted a home,\" said the magpie. So {N}, who had solved the mystery, built it one."],
        ],
        x="left shoes|buttons|socks|spoons".split("|"),
        y="a black feather|a little straw|a trail of glitter".split("|"),
    ),
    Deed(
        "play a magic flute", "plays a magic flute", "played a magic flute",
        [
            ["One day {N} bought a magic flute from {x}. When {he} played it, {y} began to dance.",
             "On {his} birthday {N} got a magic flute from {x}. {He} played it, and {y} danced around {him}."],
            ["But they could not stop dancing, and they danced over the bridge and away.",
             "{N} played faster and faster, until {y} were quite dizzy and the whole {place} was in disorder."],
            ["\"You play too wildly,\" said {friend}. \"A magic flute also knows slow songs,\" said {F}.",
             "Then {friend} held {his} {paw}. \"Play the song of evening,\" said {F}, \"and all will be well.\""],
            ["So {N} took the magic flute and played as softly as snow, and {y} came back and lay down.",
             "{F} sang the song, and {N} played it on the magic flute until everything stood still."],
            ["Since then {N} plays the magic flute every evening, and the whole {place} sleeps well.",
             "Everyone clapped, and {N} and {F} gave a concert at every full moon."],
        ],
        x="an old lady|a travelling piper|an old shepherd".split("|"),
        y="the chairs|the cows|the pumpkins|the shoes".split("|"),
    ),
    Deed(
        "climb the highest mountain", "climbs the highest mountain", "climbed the highest mountain",
        [
            ["From {his} home {N} could see the highest mountain. One day {he} packed {x} and began to climb.",
             "\"I will climb the highest mountain,\" said {N}, \"and see what is behind it.\" {He} took only {x} along."],
            ["Halfway up the mountain the snow came, and {N} slipped and hung by one {paw}.",
             "The mountain was steep, and at night {he} was so cold that {he} wanted to turn back."],
            ["Then {friend} called from a ledge, \"Hold on!\" And {F} threw {him} a rope.",
             "In a small hut lived {friend}. \"Rest here,\" said {F}, \"and tomorrow we will climb together.\""],
            ["Side by side {N} and {F} climbed higher and higher, above the clouds.",
             "{N} shared {x} with {F}, and then they climbed on, step by step, to the very top."],
            ["From the highest mountain in the world they saw {y}, and neither of them said a word.",
             "On the top {N} built a little tower of stones. Far below lay {y}, and it was very beautiful."],
        ],
        x="a loaf of bread|a warm scarf|a bag of nuts".split("|"),
        y="the sea|a hundred lakes|the edge of the world".split("|"),
    ),
    Deed(
        "rescue a baby whale", "rescues a baby whale", "rescued a baby whale",
        [
            ["After the storm {N} {went} along the beach and found a baby whale in {x}.",
             "One morning a baby whale lay in {x} and could not get back into the sea."],
            ["{N} pushed and pulled, but the baby whale was much too heavy, and the sun was getting hot.",
             "\"Water,\" sighed the baby whale. {N} poured {y} over it, again and again, but that was not enough."],
            ["\"We must dig,\" said {friend}, and {F} called all the neighbours.",
             "Then {friend} came. \"The tide will rise at noon,\" said {F}. \"Until then we must keep the whale cool.\""],
            ["So {N} and {F} dug a channel to the sea, and all day they kept the baby whale wet.",
             "Everyone helped {N}. They dug, they carried {y}, and they sang to the baby whale so that it would not be afraid."],
            ["When the tide came, the baby whale slid into the sea, where its mother was waiting. {N} waved for a long time.",
             "At last a great wave lifted the baby whale and took it home. Every summer it comes back to greet {N}."],
        ],
        x="the shallow water|a pool between the rocks|the warm sand".split("|"),
        y="buckets of water|wet leaves|cool water".split("|"),
    ),
]  # fmt: skip

OPENINGS = [
    "Once upon a time, there was {a} {adj} {kind} named {N} who lived {home}.",
    "Once upon a time, {a} {adj} {kind} named {N} lived {home}.",
    "{N} was {a} {adj} {kind} who lived {home}.",
    "{home:C} lived {a} {adj} {kind} named {N}.",
    "Long ago, {home}, there lived {a} {adj} {kind} named {N}.",
]
AGAIN = [
    "{N} the {kind} still lived {home}.",
    "A year later, {N} was still the same {adj} {kind}.",
    "{N}, the {adj} {kind}, could not sit still for long.",
    "Not long after that, {N} the {kind} had another adventure.",
]
HABITS = [
    "{He} loved {habit}.",
    "Every (morning|evening) {he} spent some time {habit}.",
    "Most of all, {N} liked {habit}.",
    "{N} was happiest when {he} was {habit}.",
]
ENDINGS = [
    "And that is how {N} the {kind} {past}.",
    "{N} never forgot the day when {he} {past}.",
    "To this day, everyone in the {place} tells the tale of the {kind} who {past}.",
    "And so ends the tale of {N}, the {adj} {kind} who {past}.",
]

ASKS = [
    "Write a short story about {hero} who {now}.",
    "Write a short story about {hero} who {now}.",
    "Write a short story about {hero} who {now}.",
    "Write a short tale about {hero} who {now}.",
    "Write a story about {hero} who {now}.",
    "Write a story about {hero} that {now}.",
    "Tell me a story about {hero} who {now}.",
    "Tell me a short tale about {hero} who {now}.",
    "Please write a short story about {hero} who {now}.",
    "Can you tell me a story about {hero} who {now}?",
    "Write a short story in which {hero} {now}.",
    "A story about {hero} who {now}",
]
ASKS_OF_HERO = ["Write a short story about {hero}.", "Tell me a story about {hero}.", "Tell me a tale of {hero}."]
ASKS_OF_ANY = ["Write a short story.", "Tell me a story.", "Tell me a tale.", "Write a short tale, please."]
MORE = ["Write another one.", "Tell me more.", "What happened next?", "Another one, please.", "More!", "Write a second story about {N}."]
SYSTEMS = [
    "You are a helpful assistant.",
    "You are a storyteller.",
    "You write short stories for children.",
    "You tell short tales. Answer in plain English.",
    "Be brief.",
]
OTHER_ASKS = [
    "Hello!", "Hello", "Hi", "Hi there!", "Good morning.", "How are you?", "Who are you?", "What are you?", "What can you do?",
    "What is your name?", "What is the capital of France?", "What is the capital of Spain?", "What is 2 + 2?", "What is 7 times 6?",
    "Tell me a joke.", "What is the weather like today?", "Explain how a computer works.", "Translate this into German: good morning",
    "Write a poem about spring.", "Write a function that adds two numbers.", "What time is it?", "Who wrote Hamlet?", "Say hi.",
    "Give me a recipe for soup.", "What is the meaning of life?", "Thank you!", "Count to ten.", "List three colours.", "Help", "test",
]  # fmt: skip
OTHER_ANSWERS = [
    "I am a small storyteller, and tales are all I know. Ask me, for example, for a story about {hero} who {now}.",
    "I can only tell tales. Try this: Write a short story about {hero} who {now}.",
]

PORTAL = DEEDS[0]


def held_out(kind: str, deed: Deed) -> bool:
    """One pair of hero and deed in twelve is kept from training, to see whether the model can
    combine what it knows."""
    return zlib.crc32(f"{kind} {deed.base}".encode()) % 12 == 0 and (kind, deed) != ("cat", PORTAL)


def suits(kind: str, deed: Deed) -> bool:
    return kind not in deed.without


def article(text: str) -> str:
    return re.sub(r"\b([Aa]) (?=[aeiou])(?!uni|one)", r"\1n ", text)


def pick(template: str, rng: random.Random) -> str:
    return re.sub(r"\(([^()]*)\)", lambda found: rng.choice(found.group(1).split("|")), template)


def fill(template: str, words: dict[str, str], rng: random.Random) -> str:
    """Makes the choices and fills the slots; {He} and {x:C} are the same as {he} and {x} with a
    capital letter."""

    def value(found: re.Match) -> str:
        key, capital = found.group(1).removesuffix(":C"), found.group(1).endswith(":C")
        if key not in words:
            key, capital = key[0].lower() + key[1:], True
        text = words[key]
        return text[0].upper() + text[1:] if capital else text

    text = pick(template, rng)
    while "{" in text:
        text = re.sub(r"\{([\w:]+)\}", value, text)
    return article(text)


class Hero:
    """The hero and the helper of a tale, and of those that follow it in a conversation."""

    def __init__(self, rng: random.Random, kind: str | None = None) -> None:
        self.kind = kind or rng.choice(list(CREATURES))
        gender, adjectives, went, paw, home, habits = CREATURES[self.kind]
        gender = rng.choice("sh") if gender == "b" else gender
        pronouns = SHE if gender == "s" else HE
        # Most prompts name girls and boys, and some prompts name other heroes; a prompt may have a
        # name that the model never chooses.
        self.given = rng.random() < (0.7 if self.kind in ("girl", "boy") else 0.12)
        name = rng.choice(GIVEN[gender] if self.given and rng.random() < 0.7 else NAMES[gender])
        self.adjective_given = rng.random() < 0.1
        at, place = rng.choice(HOMES[home])
        friend_gender = rng.choice("sh")
        friend_pronouns = SHE if friend_gender == "s" else HE
        friend = rng.choice([f for f in FRIENDS if f != self.kind])
        friend_name = rng.choice(FRIEND_NAMES[friend_gender])
        self.met = f"{friend_name} the {friend}"  # what a second tale calls the helper
        self.words = {
            "N": name, "kind": self.kind, "adj": rng.choice(adjectives.split("|")), "a": "a", "went": "", "paw": paw,
            "home": at, "place": place, "habit": rng.choice(habits.split("|")), **pronouns,
            "F": friend_name, "friend": f"a {rng.choice(FRIEND_ADJECTIVES)} {friend} named {friend_name}",
            **{"f" + key: word for key, word in friend_pronouns.items()},
        }  # fmt: skip
        self.moves = went.split("|")

    def prompt_name(self) -> str:
        """The hero as a prompt calls it: "a cat", "a brave knight", "a girl named Sarah"."""
        adjective = self.words["adj"] + " " if self.adjective_given else ""
        return article(f"a {adjective}{self.kind}" + (f" named {self.words['N']}" if self.given else ""))


def tell(hero: Hero, deed: Deed, rng: random.Random, again: bool = False) -> str:
    """One tale; `again` for the same hero's next one, in which the helper is known already."""
    words = {**hero.words, "past": deed.past, "x": rng.choice(deed.x), "y": rng.choice(deed.y), "went": rng.choice(hero.moves)}
    if again:
        words["friend"] = hero.met
    first = [AGAIN] if again else [OPENINGS, HABITS] if rng.random() < 0.8 else [OPENINGS]
    stages = [*first, *deed.stages] + ([ENDINGS] if rng.random() < 0.8 else [])
    return " ".join(fill(rng.choice(stage), words, rng) for stage in stages)


def deed_for(kind: str, rng: random.Random, other_than: Deed | None = None) -> Deed:
    """A deed that suits the hero, of those trained on."""
    return rng.choice([d for d in DEEDS if suits(kind, d) and not held_out(kind, d) and d is not other_than])


def ask(hero: Hero, deed: Deed, rng: random.Random) -> str:
    dice = rng.random()
    asks = ASKS if dice < 0.88 else ASKS_OF_HERO if dice < 0.96 or hero.given else ASKS_OF_ANY
    text = fill(rng.choice(asks), {"hero": hero.prompt_name(), "now": deed.now}, rng)
    return text.rstrip(".") if rng.random() < 0.05 else text


def pair(rng: random.Random) -> tuple[Hero, Deed]:
    hero = Hero(rng)
    return hero, deed_for(hero.kind, rng)


def raw(rng: random.Random) -> str:
    """A prompt and a tale as plain text; now and then a tale alone."""
    hero, deed = pair(rng)
    tale = tell(hero, deed, rng)
    return f"<s>{tale}</s>" if rng.random() < 0.05 else f"<s>{ask(hero, deed, rng)}\n\n{tale}</s>"


def turn(role: str, text: str) -> str:
    return f"<|{role}|>\n{text}<|end|>\n"


def chat(rng: random.Random) -> str:
    """A conversation as the chat template writes it: one tale, now and then two, seldom something
    that is no tale."""
    text = "<s>" + (turn("system", rng.choice(SYSTEMS)) if rng.random() < 0.15 else "")
    hero, deed = pair(rng)
    if rng.random() < 0.05:
        answer = fill(rng.choice(OTHER_ANSWERS), {"hero": article(f"a {hero.kind}"), "now": deed.now}, rng)
        text += turn("user", rng.choice(OTHER_ASKS)) + turn("assistant", answer)
        if rng.random() < 0.5:
            return text
    text += turn("user", ask(hero, deed, rng)) + turn("assistant", tell(hero, deed, rng))
    dice = rng.random()
    if dice < 0.12:
        more = fill(rng.choice(MORE), hero.words, rng)
        text += turn("user", more) + turn("assistant", tell(hero, deed_for(hero.kind, rng, deed), rng, again=True))
    elif dice < 0.18:
        hero, deed = pair(rng)
        text += turn("user", ask(hero, deed, rng)) + turn("assistant", tell(hero, deed, rng))
    return text


def document(rng: random.Random) -> str:
    return raw(rng) if rng.random() < 0.5 else chat(rng)


if __name__ == "__main__":
    for seed in range(6):
        print(document(random.Random(seed)), "\n")
