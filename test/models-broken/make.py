"""Makes models that cannot be served as they are.

broken-onnx        model.onnx is noise
broken-config      config.pbtxt has a field that does not exist
broken-shape       config.pbtxt disagrees with the graph in type and shape
gen-no-tokenizer   a language model without tokenizer.json
gen-bad-template   its chat_template is no Jinja
gen-missing-past   its config.json has two layers, its graph no past_key_values and no present
gen-vocab-mismatch its logits are 300 wide, its config.json and tokenizer have 320 tokens

Run with /usr/bin/python3 and Debian's python3-onnx (1.12) and python3-numpy, after infra/models/simple/make.py. Writes
the directories beside this file.
"""

import json
import shutil
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
SIMPLE = HERE.parents[1] / "infra" / "models" / "simple"

sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE.parent / "models"))
import make_generators as generators

config = (SIMPLE / "config.pbtxt").read_text()
configs = {
    "broken-onnx": config,
    "broken-config": config + "no_such_field: 1\n",
    "broken-shape": config.replace('"INPUT0" data_type: TYPE_INT32 dims: [ 16 ]', '"INPUT0" data_type: TYPE_FP32 dims: [ 4 ]'),
}
for name, text in configs.items():
    (HERE / name / "1").mkdir(parents=True, exist_ok=True)
    (HERE / name / "config.pbtxt").write_text(text.replace('name: "simple"', f'name: "{name}"'))
    if name == "broken-onnx":
        (HERE / name / "1" / "model.onnx").write_bytes(np.random.default_rng(7).bytes(512))
    else:
        shutil.copyfile(SIMPLE / "1" / "model.onnx", HERE / name / "1" / "model.onnx")

words = generators.bias(0)


def generator(name: str, words: np.ndarray = words, layers: int = 1, cache: bool = True, chat: str = generators.CHAT) -> Path:
    shape = generators.cheap(name, 102, words, layers=layers, cache=cache)
    generators.save(HERE / name, shape, "llama", chat=chat)
    return HERE / name


(generator("gen-no-tokenizer") / "tokenizer.json").unlink()
generator("gen-bad-template", chat="{{ bos_token }}{% for message in messages %}{{ message['content'] }}{% if %}")
generator("gen-missing-past", layers=2, cache=False)
path = generator("gen-vocab-mismatch", words[:300]) / "config.json"
generators.write_json(path, {**json.loads(path.read_text()), "vocab_size": len(words)})
