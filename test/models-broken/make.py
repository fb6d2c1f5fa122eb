"""Makes three models that cannot be loaded: `broken-onnx` (model.onnx is noise), `broken-config` (config.pbtxt has a
field that does not exist) and `broken-shape` (config.pbtxt disagrees with the graph in type and shape).

Run with /usr/bin/python3 and python3-numpy, after infra/models/simple/make.py. Writes the directories beside this file.
"""

import shutil
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
SIMPLE = HERE.parents[1] / "infra" / "models" / "simple"

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
