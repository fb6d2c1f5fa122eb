#!/bin/bash
# Builds Triton's clients and the models of its tests: build.sh SOURCES, whose subfolders are the
# repositories client, common, server and perf_analyzer of Triton, and sseclient. The results lie in
# SOURCES/built. Needs Debian's python3-{numpy,onnx,protobuf,grpcio,aiohttp,rapidjson,requests},
# python3-geventhttpclient, protobuf-compiler-grpc and the packages of cpp.mk.
set -e
here=$(cd "$(dirname "$0")" && pwd)
sources=$(cd "$1" && pwd)
built=$sources/built
mkdir -p "$built"/{python,models,cpp,generated}

# The client for Python, as its own build makes it.
cp -r "$sources"/client/src/python/library/triton{client,grpcclient,httpclient,clientutils,shmutils} "$built/python"
cd "$built/generated"
protoc -I"$sources/common/protobuf" --python_out=. --grpc_python_out=. \
  --plugin=protoc-gen-grpc_python="$(which grpc_python_plugin)" "$sources"/common/protobuf/{grpc_service,model_config}.proto
client=$built/python/tritonclient/grpc
cp model_config_pb2.py "$client"
cp grpc_service_pb2.py "$client/service_pb2.py"
cp grpc_service_pb2_grpc.py "$client/service_pb2_grpc.py"
sed -i -E 's/^import ([^ ]*)_pb2 as ([^ ]*)$/from tritonclient.grpc import \1_pb2 as \2/' "$client"/{model_config,service}_pb2.py
sed -i -E 's/^import grpc_([^ ]*)_pb2 as ([^ ]*)$/from tritonclient.grpc import \1_pb2 as \2/' "$client/service_pb2_grpc.py"
# The tests import it for a dtype that no model here has.
printf 'import numpy\n\nbfloat16 = numpy.void\n' > "$built/python/ml_dtypes.py"

# The models, as gen_qa_model_repository makes them.
cd "$sources/server/qa/common"
export PYTHONPATH=$built/python:.
generate() {
  mkdir -p "$built/models/$1"
  /usr/bin/python3 "gen_qa_$2_models.py" --models_dir="$built/models/$1" "${@:3}" > "$built/generated/models.log"
}
onnx="--onnx --onnx_opset=13"
mkdir -p "$built/models/qa_model_repository"
/usr/bin/python3 gen_qa_models.py $onnx --models_dir="$built/models/qa_model_repository" > "$built/generated/models.log"
generate qa_identity_model_repository identity $onnx
generate qa_sequence_model_repository sequence $onnx
generate qa_variable_sequence_model_repository sequence $onnx --variable
generate qa_sequence_initial_state_implicit_model_repository implicit $onnx --initial-state zero
generate qa_variable_sequence_initial_state_implicit_model_repository implicit $onnx --initial-state zero --variable
generate qa_sequence_implicit_model_repository implicit $onnx
generate qa_variable_sequence_implicit_model_repository implicit $onnx --variable
generate qa_dyna_sequence_model_repository dyna_sequence $onnx
ensembles=qa_ensemble_model_repository
mkdir -p "$built/models/$ensembles/qa_model_repository"
/usr/bin/python3 gen_qa_models.py --ensemble --models_dir="$built/models/$ensembles/qa_model_repository" > "$built/generated/models.log"
generate $ensembles/qa_identity_model_repository identity --ensemble
generate $ensembles/qa_sequence_model_repository sequence --ensemble
generate $ensembles/qa_variable_sequence_model_repository sequence --ensemble --variable

cd "$built/cpp"
make -s -f "$here/cpp.mk" SOURCES="$sources"
