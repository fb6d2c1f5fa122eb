#!/bin/bash
# Runs tests of Triton against Baton: suite.sh SOURCES RUNS, where RUNS is a bash script that may
# use the functions below. It needs a network and mounts of its own:
# unshare --net --mount suite.sh SOURCES RUNS
set -u
here=$(cd "$(dirname "$0")" && pwd)
sources=$1
ip link set lo up
mkdir -p /opt /data
mount -t tmpfs none /opt
mount -t tmpfs none /data
mkdir -p /opt/tritonserver/{bin,backends} /opt/bin /data/inferenceserver
ln -s "$here/tritonserver.mjs" /opt/tritonserver/bin/tritonserver
for python in python python3; do ln -s /usr/bin/python3 /opt/bin/$python; done
ln -s "$sources/built/models" /data/inferenceserver/baton
# Tests write beside themselves.
mkdir -p /opt/server
cp -r "$sources/server/qa" "$sources/server/docs" /opt/server
export PATH=/opt/bin:$PATH BACKENDS=onnx TRITON_SERVER_CPU_ONLY=1 NVIDIA_TRITON_SERVER_VERSION=baton
export PYTHONPATH=$sources/built/python:$sources/sseclient:/opt/server/qa/common
qa=/opt/server/qa
examples=$sources/client/src/python/examples
cpp=$sources/built/cpp/bin

# serve ARGUMENTS: starts the server, and waits until it is ready.
serve() {
  /opt/tritonserver/bin/tritonserver "$@" >> /opt/server.log 2>&1 &
  server=$!
  for _ in $(seq 120); do
    # 403: the test restricts this path.
    curl -s -o /dev/null -w '%{http_code}' localhost:8000/v2/health/ready | grep -qE '200|403' && return
    kill -0 $server || { cat /opt/server.log; exit 1; }
    sleep 0.5
  done
}
stop() { kill -INT $server && wait $server; }
# program NAME COMMAND: says whether a program ended well.
program() {
  local name=$1 output
  shift
  echo "Ran 1 test"
  if output=$(timeout 120 "$@" 2>&1); then echo "ok $name"; else echo "not ok $name: $(tail -n 1 <<< "$output")"; fi
}
failures() { grep -hE '^(FAIL|ERROR): ' "$@" | sed -E 's/^(FAIL|ERROR): (\w+).*/not ok \2/' | sort -u; }
# tests FOLDER FILE [CASES]: runs the cases of a file, and names those that fail.
tests() {
  cd "$qa/$1" || exit 1
  timeout 1200 python3 "$2" "${@:3}" > /opt/tests.log 2>&1
  failures /opt/tests.log
  grep -E '^Ran [0-9]+ test' /opt/tests.log
}
# script FOLDER: runs the test script of a folder as it is.
script() {
  cd "$qa/$1" || exit 1
  timeout 3000 bash ./test.sh > /opt/script.log 2>&1
  cat client*.log | awk '/^Test: /{at=$2" "$4} /^\*\*\* Test .* Failed/{print "not ok "at}'
  grep -q '^Test: ' client*.log || failures client*.log
  sed -n 's/^AssertionError: /said /p' client*.log
  grep -hE '^Ran [0-9]+ test' client*.log
}
source "$2"
