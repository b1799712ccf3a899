// Tests what the emulation of CUDA reports on incorrect kernels, and what it computes on correct ones.
#include <cuda_runtime.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "engine/cuda/kernels/device.h"

namespace krigtune::cuda {
namespace {

using testing::AllOf;
using testing::HasSubstr;

void run(void (*kernel)(float*), unsigned threads, float* data, std::size_t shared_bytes = 0) {
  launch(nullptr, 2, threads, shared_bytes, kernel, data);
  cudaDeviceSynchronize();
}

std::string complaint(void (*kernel)(float*), unsigned threads = 64) {
  try {
    run(kernel, threads, nullptr);
  } catch (const emulation::KernelError& error) {
    return error.what();
  }
  return "";
}

__global__ void diverge(float* /*data*/) {
  if (threadIdx.x < 40) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}
__global__ void leave_early(float* /*data*/) {
  if (threadIdx.x == 7 && blockIdx.x == 1) return;
  __syncthreads();
}
__global__ void shuffle_without_some(float* data) {
  if (threadIdx.x % 32 == 3) return;
  const float other = __shfl_xor_sync(kAllLanes, 1.0F, 1);
  if (other > 1.0F) data[0] = other;
}
__global__ void fail(float* /*data*/) {
  if (threadIdx.x == 1) throw std::runtime_error("in a thread");
}

TEST(CudaEmulation, ReportsABarrierThatIsNotTheSameForAll) {
  EXPECT_THAT(complaint(diverge), AllOf(HasSubstr("of block (0,0,0) waits for the block at "),
                                        HasSubstr(", but thread ("), HasSubstr("cuda_emulation_test.cpp:")));
}

TEST(CudaEmulation, ReportsAThreadThatHasEndedBeforeABarrier) {
  EXPECT_THAT(complaint(leave_early), HasSubstr(", but thread (7,0,0) of block (1,0,0) has ended"));
}

TEST(CudaEmulation, ReportsAShuffleFromALaneThatIsNotThere) {
  EXPECT_THAT(complaint(shuffle_without_some),
              AllOf(HasSubstr("waits for its warp"), HasSubstr("but thread (3,0,0) of block (0,0,0) has ended")));
}

TEST(CudaEmulation, PassesOnWhatAThreadThrows) {
  EXPECT_THROW(run(fail, 32, nullptr), std::runtime_error);
  EXPECT_EQ(complaint([](float*) { __syncthreads(); }), "");  // the emulation still works afterwards
}

#ifdef __SANITIZE_ADDRESS__
__global__ void write_behind(float* data) {
  if (threadIdx.x < 40) data[threadIdx.x] = 1.0F;
}

TEST(CudaEmulationDeathTest, AnAccessOutOfBoundsIsReportedWithItsThread) {
  EXPECT_DEATH(
      {
        std::vector<float> data(39);
        launch(nullptr, 1, 64, 0, write_behind, data.data());
        cudaDeviceSynchronize();
      },
      "heap-buffer-overflow(.|\n)*in thread \\(39,0,0\\) of block \\(0,0,0\\)");
}
#endif

// Each thread reads what its neighbour has written, with and without a barrier.
template <bool kWaits>
__global__ void pass_on(float* data) {
  auto* shared = dynamic_shared<float>();
  shared[threadIdx.x] = static_cast<float>(threadIdx.x);
  if constexpr (kWaits) __syncthreads();
  data[blockIdx.x * blockDim.x + threadIdx.x] = shared[(threadIdx.x + 1) % blockDim.x];
}

TEST(CudaEmulation, AMissingBarrierShows) {
  constexpr unsigned kThreads = 64;
  std::vector<float> right(2 * kThreads), wrong(2 * kThreads);
  run(pass_on<true>, kThreads, right.data(), kThreads * sizeof(float));
  run(pass_on<false>, kThreads, wrong.data(), kThreads * sizeof(float));
  for (unsigned t = 0; t < 2 * kThreads; ++t) EXPECT_EQ(right[t], static_cast<float>((t + 1) % kThreads));
  EXPECT_NE(right, wrong);
}

__global__ void multiply(float* sums) {
  // Element (i, k) of a is i + k, and element (k, j) of b is k - j. Such small integers are exact in bf16.
  auto* shared = dynamic_shared<std::uint16_t>();
  for (unsigned e = threadIdx.x; e < 256; e += 32) shared[e] = engine::to_bf16(static_cast<float>(e / 16 + e % 16));
  for (unsigned e = threadIdx.x; e < 128; e += 32) {
    shared[256 + e] = engine::to_bf16(static_cast<float>(e / 8) - static_cast<float>(e % 8));
  }
  __syncwarp();
  const unsigned lane = threadIdx.x;
  std::uint32_t a[4];
  std::uint32_t b[4];
  load_matrices(a, shared + lane % 16 * 16 + lane / 16 * 8);
  load_matrices_transposed(b, shared + 256 + lane % 16 * 8);
  float c[4] = {1.0F, 1.0F, 1.0F, 1.0F};
  multiply_add<true>(c, a, b[0], b[1]);
  const unsigned at = lane / 4 * 8 + lane % 4 * 2;
  sums[at] = c[0];
  sums[at + 1] = c[1];
  sums[at + 64] = c[2];
  sums[at + 65] = c[3];
}

TEST(CudaEmulation, TensorCoresMultiplyAndAdd) {
  std::vector<float> sums(128);
  launch(nullptr, 1, 32, 1024, multiply, sums.data());
  cudaDeviceSynchronize();
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 8; ++j) {
      int expected = 1;
      for (int k = 0; k < 16; ++k) expected += (i + k) * (k - j);
      EXPECT_EQ(sums[static_cast<std::size_t>(8 * i + j)], static_cast<float>(expected)) << i << ", " << j;
    }
  }
}

template <int kLeft>
__global__ void copy_in_background(float* data) {
  auto* shared = dynamic_shared<float>();
  copy_async(shared + 4 * threadIdx.x, data + 4 * threadIdx.x);
  commit_copies();
  wait_for_copies<kLeft>();
  __syncthreads();
  data[4 * threadIdx.x] = shared[4 * threadIdx.x] + 1.0F;
}

TEST(CudaEmulation, ACopyArrivesWhenItIsWaitedFor) {
  std::vector<float> waited(128, 1.0F), not_waited(128, 1.0F);
  launch(nullptr, 1, 32, 512, copy_in_background<0>, waited.data());
  launch(nullptr, 1, 32, 512, copy_in_background<1>, not_waited.data());
  cudaDeviceSynchronize();
  EXPECT_EQ(waited[0], 2.0F);
  EXPECT_TRUE(std::isnan(not_waited[0]));
}

// Returns the order in which work on two streams is executed: always the same if one waits for the other, and otherwise
// dependent on the seed.
std::vector<int> order_of(std::uint64_t seed, bool waits) {
  emulation::set_seed(seed);
  std::vector<int> order;
  cudaStream_t one = nullptr, two = nullptr;
  cudaEvent_t event = nullptr;
  cudaStreamCreateWithPriority(&one, cudaStreamNonBlocking, 0);
  cudaStreamCreateWithPriority(&two, cudaStreamNonBlocking, 0);
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  emulation::enqueue(one, [&] { order.push_back(1); });
  cudaEventRecord(event, one);
  if (waits) cudaStreamWaitEvent(two, event, 0);
  emulation::enqueue(two, [&] { order.push_back(2); });
  cudaDeviceSynchronize();
  cudaEventDestroy(event);
  cudaStreamDestroy(one);
  cudaStreamDestroy(two);
  return order;
}

TEST(CudaEmulation, OnlyWaitsOrderStreams) {
  int other_way = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    EXPECT_EQ(order_of(seed, true), (std::vector<int>{1, 2}));
    if (order_of(seed, false) == std::vector<int>{2, 1}) ++other_way;
  }
  EXPECT_GT(other_way, 0);
}

}  // namespace
}  // namespace krigtune::cuda
