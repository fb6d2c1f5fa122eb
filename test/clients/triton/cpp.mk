# Builds Triton's C++ clients and perf_analyzer with Debian's packages, which their own build cannot
# use: libgrpc++-dev, libprotobuf-dev, protobuf-compiler-grpc, rapidjson-dev, libcurl4-openssl-dev,
# libb64-dev, pkg-config. Run it in a folder of one's own: make -f cpp.mk SOURCES=<folder>
LIB := $(SOURCES)/client/src/c++/library
EX := $(SOURCES)/client/src/c++/examples
PA := $(SOURCES)/perf_analyzer/src
PROTO := $(SOURCES)/common/protobuf
FLAGS := -std=c++20 -O1 -w -Igen -I$(LIB) -I$(SOURCES)/common/include -DTRITON_ENABLE_ZLIB=1
LIBS := $(shell pkg-config --libs grpc++ protobuf) -lcurl -lz -lb64 -lpthread -lrt -ldl

CLIENTS := $(basename $(notdir $(filter-out %shm_client.cc,$(wildcard $(EX)/simple_grpc_*.cc $(EX)/simple_http_*.cc))))
GEN := grpc_service.pb grpc_service.grpc.pb model_config.pb health.pb health.grpc.pb
COMMON := $(addprefix lib/,grpc_client.o http_client.o common.o cencode.o json_utils.o shm_utils.o) $(GEN:%=gen/%.o)
PA_SOURCES := main.cc client_backend/client_backend.cc client_backend/triton/triton_client_backend.cc \
  $(shell awk '/^  PERF_ANALYZER_SRCS/{f=1} /PERF_ANALYZER_HDRS/{f=0} f&&/[.]cc/{print $$1}' $(PA)/CMakeLists.txt | sort -u)
PA_FLAGS := -I$(PA) -I$(PA)/client_backend -I$(PA)/session_concurrency \
  -DPERF_ANALYZER_VERSION=0.0.0 -DGIT_SHA=none -DDOCTEST_CONFIG_DISABLE

all: $(addprefix bin/,$(CLIENTS) perf_analyzer)
.SECONDARY:
.DELETE_ON_ERROR:

gen/made:
	mkdir -p gen lib ex bin
	protoc -I$(PROTO) --cpp_out=gen --grpc_out=gen --plugin=protoc-gen-grpc=$$(which grpc_cpp_plugin) $(PROTO)/*.proto
	touch $@
gen/%.o: gen/made
	$(CXX) $(FLAGS) -c gen/$*.cc -o $@
lib/%.o: $(LIB)/%.cc gen/made
	$(CXX) $(FLAGS) -c $< -o $@
ex/%.o: $(EX)/%.cc gen/made
	$(CXX) $(FLAGS) -c $< -o $@
pa/%.o: $(PA)/%.cc gen/made
	mkdir -p $(@D)
	$(CXX) $(FLAGS) $(PA_FLAGS) -c $< -o $@
bin/perf_analyzer: $(PA_SOURCES:%.cc=pa/%.o) $(COMMON)
	$(CXX) -o $@ $^ $(LIBS)
bin/%: ex/%.o $(COMMON)
	$(CXX) -o $@ $^ $(LIBS)
