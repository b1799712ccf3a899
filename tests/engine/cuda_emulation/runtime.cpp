#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <unordered_map>
#include <vector>

namespace {

/// One item of work on a stream, with those that must be done before it.
struct Node {
  std::function<void()> work;
  std::vector<std::shared_ptr<Node>> after;
  bool done = false;
};
using NodePtr = std::shared_ptr<Node>;

/// Work that was put on streams in order to be replayed.
struct Capture {
  std::vector<NodePtr> nodes;
  bool ended = false;
  bool lost = false;
};
using CapturePtr = std::shared_ptr<Capture>;

}  // namespace

struct CUgraph_st {
  explicit CUgraph_st(std::vector<NodePtr> captured) : nodes(std::move(captured)) {}
  std::vector<NodePtr> nodes;
};
struct CUgraphExec_st {
  explicit CUgraphExec_st(std::vector<NodePtr> captured) : nodes(std::move(captured)) {}
  std::vector<NodePtr> nodes;
};
struct CUstream_st {
  NodePtr last;
  std::vector<NodePtr> waits;  ///< what the next item must wait for
  CapturePtr capture;          ///< null if the stream is not being captured
  NodePtr before;              ///< the last item before the capture
};
struct CUevent_st {
  NodePtr node;
  CapturePtr capture;  ///< in which it was recorded
  std::uint64_t time_ns = 0;
  bool asked = false;
};

namespace {

struct Device {
  CUstream_st default_stream;
  std::vector<CUstream_st*> streams;
  std::vector<NodePtr> pending;
  std::minstd_rand random{1};
  std::int64_t kernels = 0;
  std::uint64_t kernel_ns = 0;
  std::int64_t warp_products = 0;
  std::size_t bytes = 0;
  std::size_t others_bytes = 0;
  krigtune::emulation::GraphsLack graphs_lack = krigtune::emulation::GraphsLack::kNothing;
};
thread_local Device device;
std::unordered_map<void*, std::size_t>& sizes() {
  thread_local std::unordered_map<void*, std::size_t> all;
  return all;
}

std::atomic<int>& shared_limit() {
  static std::atomic<int> bytes{227 << 10};
  return bytes;
}

void join(CUstream_st& stream, const CapturePtr& capture) {
  stream.capture = capture;
  stream.before = std::exchange(stream.last, nullptr);
}

CUstream_st& of(cudaStream_t stream) { return stream == nullptr ? device.default_stream : *stream; }

NodePtr append(CUstream_st& stream, std::function<void()> work) {
  auto node = std::make_shared<Node>();
  node->work = std::move(work);
  node->after = std::exchange(stream.waits, {});
  if (stream.last) node->after.push_back(stream.last);
  stream.last = node;
  (stream.capture ? stream.capture->nodes : device.pending).push_back(node);
  return node;
}

bool is_ready(const Node& node) {
  return std::all_of(node.after.begin(), node.after.end(), [](const NodePtr& other) { return other->done; });
}

void execute_all() {
  while (!device.pending.empty()) {
    std::vector<std::size_t> ready;
    for (std::size_t i = 0; i < device.pending.size() && ready.size() < 8; ++i) {
      if (is_ready(*device.pending[i])) ready.push_back(i);
    }
    if (ready.empty()) throw std::logic_error("what is on the streams waits for something that is on none");
    const std::size_t drawn = ready[device.random() % ready.size()];
    const NodePtr node = device.pending[drawn];
    device.pending.erase(device.pending.begin() + static_cast<std::ptrdiff_t>(drawn));
    constexpr std::uint64_t kMicrosecond = 1000;
    krigtune::emulation::pass_ns(kMicrosecond);
    try {
      node->work();
    } catch (...) {  // the work that is still queued has become meaningless
      node->done = true;
      for (const NodePtr& dropped : std::exchange(device.pending, {})) dropped->done = true;
      throw;
    }
    node->done = true;
    node->after.clear();
  }
}

// Returns copies of a graph's nodes. If `before` is given, they all wait for it.
std::vector<NodePtr> copy_of(const std::vector<NodePtr>& nodes, const NodePtr& before) {
  std::map<const Node*, NodePtr> copies;
  std::vector<NodePtr> result;
  for (const NodePtr& node : nodes) {
    auto copy = std::make_shared<Node>();
    copy->work = node->work;
    for (const NodePtr& other : node->after) {
      const auto found = copies.find(other.get());
      if (found != copies.end()) copy->after.push_back(found->second);
    }
    if (before) copy->after.push_back(before);
    copies[node.get()] = copy;
    result.push_back(copy);
  }
  return result;
}

}  // namespace

namespace krigtune::emulation {

void set_shared_limit(int bytes) { shared_limit() = bytes; }
void enqueue(cudaStream_t stream, std::function<void()> work) { append(of(stream), std::move(work)); }
void set_seed(std::uint64_t seed) { device.random.seed(static_cast<std::minstd_rand::result_type>(seed)); }
std::size_t allocated_bytes() { return device.bytes; }
std::int64_t kernels_executed() { return device.kernels; }
void set_kernel_time(std::uint64_t length_ns) { device.kernel_ns = length_ns; }
void begin_kernel() { ++device.kernels; }
void end_kernel() { pass_ns(device.kernel_ns); }
void set_graphs_lack(GraphsLack what) { device.graphs_lack = what; }
bool takes_kernel(cudaStream_t stream) {
  const CapturePtr& capture = of(stream).capture;
  if (capture && device.graphs_lack == GraphsLack::kKernels) capture->lost = true;
  return !capture || !capture->lost;
}
void set_others_bytes(std::size_t bytes) { device.others_bytes = bytes; }
std::int64_t warp_products_executed() { return device.warp_products; }
void count_warp_product() { ++device.warp_products; }

}  // namespace krigtune::emulation

const char* cudaGetErrorName(cudaError_t error) {
  if (error == cudaErrorMemoryAllocation) return "cudaErrorMemoryAllocation";
  return error == cudaErrorNotSupported ? "cudaErrorNotSupported" : "cudaErrorInvalidValue";
}
const char* cudaGetErrorString(cudaError_t error) {
  if (error == cudaErrorMemoryAllocation) return "out of memory";
  return error == cudaErrorNotSupported ? "operation not supported" : "invalid argument";
}

cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
cudaError_t cudaSetDevice(int number) { return number == 0 ? cudaSuccess : cudaErrorInvalidValue; }
cudaError_t cudaGetDevice(int* number) { return *number = 0, cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int /*device*/) {
  *properties = {"emulated", std::size_t{1} << 30U, 2, 9, 0};
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) { return *version = 13000, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = 13000, cudaSuccess; }
cudaError_t cudaDeviceGetPCIBusId(char* address, int size, int /*device*/) {
  std::snprintf(address, static_cast<std::size_t>(size), "0000:65:00.0");
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr /*attribute*/, int /*device*/) {
  return *value = shared_limit(), cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() { return execute_all(), cudaSuccess; }
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  *memory = nullptr;
  if (bytes == 0) return cudaSuccess;
  constexpr std::size_t kAlignment = 256;
  // Allocates exactly these bytes, so that AddressSanitizer sees an access to the next one.
  if (posix_memalign(memory, kAlignment, bytes) != 0) return cudaErrorMemoryAllocation;
  std::memset(*memory, 0xFF, bytes);
  sizes()[*memory] = bytes;
  device.bytes += bytes;
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  if (memory == nullptr) return cudaSuccess;
  device.bytes -= sizes()[memory];
  sizes().erase(memory);
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned /*flags*/) {
  *memory = std::calloc(bytes, 1);
  return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) { return std::free(memory), cudaSuccess; }
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *total = std::size_t{1} << 30U;
  *free = *total - device.bytes - device.others_bytes;
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind /*kind*/) {
  if (bytes > 0) std::memmove(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemset(void* memory, int value, std::size_t bytes) {
  if (bytes > 0) std::memset(memory, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind /*kind*/,
                            cudaStream_t stream) {
  append(of(stream), [=] { std::memmove(to, from, bytes); });
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  append(of(stream), [=] { std::memset(memory, value, bytes); });
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned /*flags*/, int /*priority*/) {
  *stream = std::make_unique<CUstream_st>().release();
  device.streams.push_back(*stream);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  std::erase(device.streams, stream);
  const std::unique_ptr<CUstream_st> owner(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t /*stream*/) { return execute_all(), cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/) {
  if (!event->node) return cudaSuccess;
  CUstream_st& waiting = of(stream);
  if (event->capture && event->capture->ended) return cudaErrorCapturedEvent;
  if (event->capture && !waiting.capture) join(waiting, event->capture);
  waiting.waits.push_back(event->node);
  return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  append(of(stream), [=] { function(data); });
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned /*flags*/) {
  *event = std::make_unique<CUevent_st>().release();
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const std::unique_ptr<CUevent_st> owner(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  event->capture = of(stream).capture;
  event->asked = false;
  event->node = append(of(stream), [event] { event->time_ns = krigtune::emulation::now_ns(); });
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (!std::exchange(event->asked, true)) return cudaErrorNotReady;
  return execute_all(), cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t from, cudaEvent_t to) {
  constexpr double kMsPerNs = 1e-6;
  const auto elapsed_ns = static_cast<double>(to->time_ns) - static_cast<double>(from->time_ns);
  *ms = static_cast<float>(elapsed_ns * kMsPerNs);
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode /*mode*/) {
  join(of(stream), std::make_shared<Capture>());
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const CapturePtr capture = of(stream).capture;
  capture->ended = true;
  *graph = capture->lost ? nullptr : std::make_unique<CUgraph_st>(std::move(capture->nodes)).release();
  std::vector<CUstream_st*> all = device.streams;
  all.push_back(&device.default_stream);
  for (CUstream_st* each : all) {
    if (each->capture != capture) continue;
    each->capture = nullptr;
    each->last = std::move(each->before);
    each->waits.clear();
  }
  return capture->lost ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long /*flags*/) {
  if (device.graphs_lack == krigtune::emulation::GraphsLack::kInstantiation) return cudaErrorNotSupported;
  *executable = std::make_unique<CUgraphExec_st>(copy_of(graph->nodes, nullptr)).release();
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  const NodePtr before = append(of(stream), [] {});
  std::vector<NodePtr> nodes = copy_of(executable->nodes, before);
  device.pending.insert(device.pending.end(), nodes.begin(), nodes.end());
  of(stream).waits = std::move(nodes);
  append(of(stream), [] {});
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  const std::unique_ptr<CUgraph_st> owner(graph);
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  const std::unique_ptr<CUgraphExec_st> owner(executable);
  return cudaSuccess;
}
