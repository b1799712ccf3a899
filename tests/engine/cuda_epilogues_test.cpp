// Tests matrix products by an emulated cuBLASLt: which algorithm is chosen, and when an epilogue replaces a kernel.
#include <cublasLt.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "cuda_case_runs.h"
#include "engine/cuda/blas_gemm.h"

namespace krigtune::cuda {
namespace {

using emulation::blas_behaviour;

class CudaEpilogues : public testing::Test {
 protected:
  void SetUp() override {
    blas_behaviour() = {};
    setenv("KRIGTUNE_CACHE", directory_.c_str(), 1);
  }
  void TearDown() override {
    blas_behaviour() = {};
    std::filesystem::remove_all(directory_);
  }

  std::filesystem::path directory_ =
      std::filesystem::temp_directory_path() / ("krigtune_epilogues_" + std::to_string(getpid()));
};

constexpr schedule::DType kTypes[] = {schedule::DType::kFp32, schedule::DType::kBf16, schedule::DType::kFp16};

plan::Shape shape(std::int64_t rows, std::int64_t inner, std::int64_t outer) {
  plan::Shape s;
  s.rows = rows;
  s.inner = inner;
  s.outer = outer;
  return s;
}

/// A product and the activation, or its gradient, that follows it. They share one operand, whose index in each is
/// given.
struct Pair {
  Case product, activation;
  std::size_t shared_of_product = 2, shared_of_activation = 0;
};

Pair forward_pair(schedule::DType type, bool has_bias = true, std::int64_t outer = 40) {
  Maker m(type, plan::Access::kWrite);
  constexpr std::int64_t kRows = 14, kInner = 24;
  Pair pair;
  pair.product = {"linear", schedule::OpKind::kLinearForward, shape(kRows, kInner, outer), {}, 1.0, {}};
  pair.product.operands = {m.in(kRows * kInner), m.in(outer * kInner, 0.0, 0.3), m.out(kRows * outer)};
  if (has_bias) pair.product.operands.push_back(m.in(outer));
  pair.activation = {"gelu", schedule::OpKind::kGeluForward, shape(kRows, outer, 0), {}, 1.0, {}};
  pair.activation.operands = {m.in(kRows * outer), m.out(kRows * outer)};
  return pair;
}

Pair backward_pair(schedule::DType type) {
  Maker m(type, plan::Access::kWrite);
  constexpr std::int64_t kRows = 14, kInner = 40, kOuter = 24;
  Pair pair;
  pair.product = {"linear", schedule::OpKind::kLinearBackwardInput, shape(kRows, kInner, kOuter), {}, 1.0, {}};
  pair.product.operands = {m.in(kRows * kOuter), m.in(kOuter * kInner, 0.0, 0.3), m.out(kRows * kInner)};
  pair.activation = {"gelu gradient", schedule::OpKind::kGeluBackward, shape(kRows, kInner, 0), {}, 1.0, {}};
  pair.activation.operands = {m.in(kRows * kInner), m.in_place(kRows * kInner)};
  pair.shared_of_activation = 1;
  return pair;
}

/// Holds both on the device, with the shared operand in one place and the product prepared.
struct OnDevice {
  Pair given;
  DeviceCase product, activation;

  explicit OnDevice(const Pair& pair) : given(pair), product(pair.product), activation(pair.activation) {
    activation.share(pair.shared_of_activation, product, pair.shared_of_product);
    product.prepare();
  }
  PairKernel kernel() const { return pair_kernel_for(product.call(), activation.call()); }
};

// The reference passes the product's result on in fp32, so that only the device rounds it to 16 bits.
void expect_both(const OnDevice& on_device) {
  const Pair& pair = on_device.given;
  Case expected = pair.activation;
  const auto of_product = done_in_fp64(pair.product)[pair.shared_of_product];
  expected.operands[pair.shared_of_activation] =
      bytes_of(schedule::DType::kFp32, {of_product.begin(), of_product.end()}, plan::Access::kReadWrite);
  const auto of_activation = done_in_fp64(expected);
  const double most = tolerance(pair.product.operands[0].type);
  const Case product = on_device.product.result();
  const Case activation = on_device.activation.result();
  if (pair.shared_of_activation == 0) {
    EXPECT_LE(relative_error(product.operands[2].numbers(), of_product), most);
    EXPECT_LE(relative_error(activation.operands[1].numbers(), of_activation[1]), most);
  } else {
    EXPECT_LE(relative_error(product.operands[2].numbers(), of_activation[1]), most);
  }
}

void run(const OnDevice& on_device, PairKernel kernel) {
  if (kernel != nullptr) return kernel(on_device.product.call(), on_device.activation.call());
  device_kernel_for(on_device.given.product.kind)(on_device.product.call());
  device_kernel_for(on_device.given.activation.kind)(on_device.activation.call());
}

TEST_F(CudaEpilogues, AGeluIsComputedAlongWithItsProduct) {
  for (const schedule::DType type : kTypes) {
    for (const bool has_bias : {true, false}) {
      const OnDevice pair(forward_pair(type, has_bias));
      const PairKernel kernel = pair.kernel();
      ASSERT_NE(kernel, nullptr);
      blas_behaviour().with_epilogue.clear();
      run(pair, kernel);
      expect_both(pair);
      const std::uint32_t expected = has_bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
      EXPECT_EQ(blas_behaviour().with_epilogue, (std::map<std::uint32_t, int>{{expected, 1}}));
    }
  }
}

TEST_F(CudaEpilogues, AGelusGradientIsComputedAlongWithItsProduct) {
  for (const schedule::DType type : kTypes) {
    const OnDevice pair(backward_pair(type));
    const PairKernel kernel = pair.kernel();
    ASSERT_NE(kernel, nullptr);
    blas_behaviour().with_epilogue.clear();
    run(pair, kernel);
    expect_both(pair);
    EXPECT_EQ(blas_behaviour().with_epilogue, (std::map<std::uint32_t, int>{{CUBLASLT_EPILOGUE_DGELU, 1}}));
  }
}

TEST_F(CudaEpilogues, ABiasGradientIsSummedAlongWithTheWeights) {
  for (const schedule::DType type : kTypes) {
    for (const plan::Access out : {plan::Access::kWrite, plan::Access::kReadWrite}) {
      Maker m(type, out);
      Case given{"linear", schedule::OpKind::kLinearBackwardWeight, shape(27, 16, 24), {}, 1.0, {}};
      given.operands = {m.in(27 * 24), m.in(27 * 16), m.out(24 * 16), m.out(24)};
      const DeviceCase on_device(given);
      on_device.prepare();
      blas_behaviour().with_epilogue.clear();
      device_kernel_for(given.kind)(on_device.call());
      const Case result = on_device.result();
      const auto expected = done_in_fp64(given);
      for (const std::size_t operand : {2U, 3U}) {
        EXPECT_LE(relative_error(result.operands[operand].numbers(), expected[operand]), tolerance(type)) << operand;
      }
      EXPECT_EQ(blas_behaviour().with_epilogue, (std::map<std::uint32_t, int>{{CUBLASLT_EPILOGUE_BGRADB, 1}}));
    }
  }
}

// An epilogue is not used if the length of rows is not a multiple of 8, if the library does not have it, or if kernels
// are faster.
TEST_F(CudaEpilogues, KernelsComputeWhatAnEpilogueDoesNot) {
  const auto expect_apart = [](const Pair& given) {
    const OnDevice pair(given);
    EXPECT_EQ(pair.kernel(), nullptr);
    blas_behaviour().with_epilogue.clear();
    run(pair, nullptr);
    expect_both(pair);
    for (const auto& [epilogue, times] : blas_behaviour().with_epilogue) {
      EXPECT_TRUE(epilogue == CUBLASLT_EPILOGUE_DEFAULT || epilogue == CUBLASLT_EPILOGUE_BIAS) << epilogue;
    }
  };
  expect_apart(forward_pair(schedule::DType::kBf16, true, 36));
  blas_behaviour().has_epilogues = false;
  expect_apart(forward_pair(schedule::DType::kBf16));
  expect_apart(backward_pair(schedule::DType::kBf16));
  blas_behaviour() = {};
  for (const std::uint32_t slow : {CUBLASLT_EPILOGUE_GELU_AUX_BIAS, CUBLASLT_EPILOGUE_DGELU}) {
    blas_behaviour().time_of_epilogue[slow] = 2;
  }
  expect_apart(forward_pair(schedule::DType::kFp16));
  expect_apart(backward_pair(schedule::DType::kFp16));
}

TEST_F(CudaEpilogues, NothingIsWrittenBeforeItMayBe) {
  const OnDevice separate(forward_pair(schedule::DType::kBf16));
  EXPECT_NE(separate.kernel(), nullptr);
  Pair wide = forward_pair(schedule::DType::kBf16, false, 40);
  OnDevice over_input(wide);
  over_input.activation.share(1, over_input.product, 0);  // in the memory of x, which other blocks still read
  EXPECT_EQ(over_input.kernel(), nullptr);
  wide.activation.operands[1].access = plan::Access::kReadWrite;
  EXPECT_EQ(OnDevice(wide).kernel(), nullptr);
  const Pair alone = forward_pair(schedule::DType::kBf16);
  const DeviceCase product(alone.product);
  product.prepare();
  EXPECT_EQ(pair_kernel_for(product.call(), DeviceCase(alone.activation).call()), nullptr);  // its input is another
}

Product product_on(const DeviceCase& on_device) { return product_of(on_device.call()); }

/// How often each algorithm multiplied during the choice, and which one was chosen.
struct Choice {
  std::map<int, int> tried;
  int chosen = 0;
};
Choice choose() {
  const DeviceCase on_device(forward_pair(schedule::DType::kFp32).product);
  blas_behaviour().multiplied.clear();
  const std::unique_ptr<Gemm> gemm = make_blas_gemm();
  gemm->prepare(product_on(on_device));
  Choice choice{blas_behaviour().multiplied, 0};
  blas_behaviour().multiplied.clear();
  gemm->multiply(product_on(on_device), nullptr);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  choice.chosen = blas_behaviour().multiplied.begin()->first;
  return choice;
}

TEST_F(CudaEpilogues, TheFastestOfThirtyTwoAlgorithmsIsChosen) {
  blas_behaviour().time_of_split = 90;
  blas_behaviour().times = std::vector<int>(40, 9);
  blas_behaviour().times[31] = 5;
  blas_behaviour().times[32] = 1;
  EXPECT_EQ(choose().chosen, 32);
}

TEST_F(CudaEpilogues, AlgorithmsThatAreCloseAreTriedForLonger) {
  blas_behaviour().times = {5, 3, 3};
  blas_behaviour().time_of_split = 9;
  const Choice choice = choose();
  EXPECT_EQ(choice.chosen, 2);
  // Algorithms run once, four times and twenty times, each time after one run that is not timed.
  EXPECT_EQ(choice.tried.at(1), 2 + 5);
  EXPECT_EQ(choice.tried.at(2), 2 + 5 + 21);
  EXPECT_EQ(choice.tried.at(3), 2 + 5 + 21);
  for (const int parts : {2, 3, 4, 8}) EXPECT_EQ(choice.tried.at(100 * (parts - 1) + 2), 2) << parts;
}

TEST_F(CudaEpilogues, ADepthThatIsSplitIsTriedToo) {
  blas_behaviour().times = {9, 5, 7};
  blas_behaviour().time_of_split = 2;
  const Choice choice = choose();
  EXPECT_EQ(choice.chosen, 102);  // algorithm 2, the fastest without a split, in two parts
  for (const int parts : {2, 3, 4, 8}) EXPECT_GE(choice.tried.at(100 * (parts - 1) + 3), 2 + 5) << parts;
  EXPECT_EQ(choice.tried.count(101), 0U);  // the slowest one is not tried with a split
}

// The choice of an earlier run is kept, whatever would be faster now.
TEST_F(CudaEpilogues, AChoiceIsKeptFromRunToRun) {
  blas_behaviour().version = 1;
  const auto is_one = [] { return OnDevice(forward_pair(schedule::DType::kBf16)).kernel() != nullptr; };
  EXPECT_TRUE(is_one());
  blas_behaviour().time_of_epilogue[CUBLASLT_EPILOGUE_GELU_AUX_BIAS] = 9;
  blas_behaviour().multiplied.clear();
  EXPECT_TRUE(is_one());
  EXPECT_TRUE(blas_behaviour().multiplied.empty());
  std::filesystem::remove_all(directory_);
  EXPECT_FALSE(is_one());
  blas_behaviour().time_of_epilogue.clear();
  blas_behaviour().multiplied.clear();
  EXPECT_FALSE(is_one());
  EXPECT_TRUE(blas_behaviour().multiplied.empty());
}

}  // namespace
}  // namespace krigtune::cuda
