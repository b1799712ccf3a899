// cuBLASLt is column-major, and a row-major matrix is its own transpose there: D = A B becomes D^T = B^T A^T, so that
// the library's first matrix is our b, and its rows are our columns. Its heuristic's first choice is not always the
// fastest: the first few are tried once for each shape, and the fastest is kept.
#include "engine/cuda/blas_gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <compare>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <stdexcept>
#include <vector>

#include "engine/cuda/algorithm_cache.h"
#include "engine/cuda/runtime/blas_library.h"
#include "engine/cuda/runtime/handles.h"
#include "plan/step_plan.h"

namespace krigtune::cuda {

// Owners of what cuBLASLt hands out. All functions throw DeviceError.

struct DestroyBlas {
  void operator()(cublasLtContext* handle) const { blas().destroy(handle); }
  void operator()(cublasLtMatmulDescOpaque_t* description) const { blas().desc_destroy(description); }
  void operator()(cublasLtMatrixLayoutOpaque_t* layout) const { blas().layout_destroy(layout); }
  void operator()(cublasLtMatmulPreferenceOpaque_t* preference) const { blas().preference_destroy(preference); }
};
using BlasHandle = std::unique_ptr<cublasLtContext, DestroyBlas>;
using MatmulDescription = std::unique_ptr<cublasLtMatmulDescOpaque_t, DestroyBlas>;
using MatrixLayout = std::unique_ptr<cublasLtMatrixLayoutOpaque_t, DestroyBlas>;
using MatmulPreference = std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, DestroyBlas>;

BlasHandle make_blas_handle();
/// Of a product with sums in fp32.
MatmulDescription make_matmul_description();
/// Column-major and dense. `type`: fp32, bf16 or fp16.
MatrixLayout make_layout(schedule::DType type, std::int64_t rows, std::int64_t cols);
MatmulPreference make_preference();
cudaDataType_t blas_type(schedule::DType type);

template <class T>
void set_attribute(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t which, const T& value) {
  KRIGTUNE_CHECK_BLAS(blas().desc_set_attribute(description, which, &value, sizeof(value)));
}
template <class T>
void set_attribute(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t which, const T& value) {
  KRIGTUNE_CHECK_BLAS(blas().preference_set_attribute(preference, which, &value, sizeof(value)));
}

BlasHandle make_blas_handle() {
  cublasLtHandle_t handle = nullptr;
  KRIGTUNE_CHECK_BLAS(blas().create(&handle));
  return BlasHandle(handle);
}

MatmulDescription make_matmul_description() {
  cublasLtMatmulDesc_t description = nullptr;
  KRIGTUNE_CHECK_BLAS(blas().desc_create(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  return MatmulDescription(description);
}

MatrixLayout make_layout(schedule::DType type, std::int64_t rows, std::int64_t cols) {
  cublasLtMatrixLayout_t layout = nullptr;
  KRIGTUNE_CHECK_BLAS(blas().layout_create(&layout, blas_type(type), static_cast<std::uint64_t>(rows),
                                           static_cast<std::uint64_t>(cols), rows));
  return MatrixLayout(layout);
}

MatmulPreference make_preference() {
  cublasLtMatmulPreference_t preference = nullptr;
  KRIGTUNE_CHECK_BLAS(blas().preference_create(&preference));
  return MatmulPreference(preference);
}

cudaDataType_t blas_type(schedule::DType type) {
  switch (type) {
    case schedule::DType::kFp32:
      return CUDA_R_32F;
    case schedule::DType::kBf16:
      return CUDA_R_16BF;
    case schedule::DType::kFp16:
      return CUDA_R_16F;
    default:
      throw std::logic_error("only numbers can be multiplied");
  }
}

namespace {

constexpr std::int64_t kWorkspaceBytes = std::int64_t{32} << 20U;  // what NVIDIA recommends for Hopper
constexpr std::uint64_t kMostAlignmentBytes = 256;                 // more helps no kernel
constexpr int kTried = 8;
constexpr int kTimedRuns = 4;

std::uint32_t alignment_bytes(const Product& p) {
  const auto all = std::bit_cast<std::uintptr_t>(p.a.data) | std::bit_cast<std::uintptr_t>(p.b.data) |
                   std::bit_cast<std::uintptr_t>(p.d.data) | kMostAlignmentBytes;
  return static_cast<std::uint32_t>(all & (~all + 1));  // its lowest bit
}

/// What an algorithm depends on.
struct Key {
  std::int64_t rows, cols, depth;
  bool transpose_a, transpose_b, adds, has_bias;
  schedule::DType a, b, d;
  std::uint32_t alignment;

  explicit Key(const Product& p)
      : rows(p.rows),
        cols(p.cols),
        depth(p.depth),
        transpose_a(p.transpose_a),
        transpose_b(p.transpose_b),
        adds(p.d.adds()),
        has_bias(p.bias.data != nullptr),
        a(p.a.type),
        b(p.b.type),
        d(p.d.type),
        alignment(alignment_bytes(p)) {}
  auto operator<=>(const Key&) const = default;

  std::string text() const {
    return fmt::format("{} x {} x {}{}{}{}{}, types {} {} {}, aligned to {}", rows, cols, depth,
                       transpose_a ? ", a transposed" : "", transpose_b ? ", b transposed" : "", adds ? ", added" : "",
                       has_bias ? ", bias" : "", static_cast<int>(a), static_cast<int>(b), static_cast<int>(d),
                       alignment);
  }
};

struct Prepared {
  MatmulDescription description;
  MatrixLayout a, b, d;
  cublasLtMatmulAlgo_t algorithm{};
};

Prepared describe(const Product& p) {
  Prepared prepared;
  prepared.description = make_matmul_description();
  cublasLtMatmulDesc_t description = prepared.description.get();
  set_attribute(description, CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set_attribute(description, CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (p.bias.data != nullptr) {
    set_attribute(description, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set_attribute(description, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<std::int32_t>(blas_type(p.bias.type)));
  }
  prepared.b = p.transpose_b ? make_layout(p.b.type, p.depth, p.cols) : make_layout(p.b.type, p.cols, p.depth);
  prepared.a = p.transpose_a ? make_layout(p.a.type, p.rows, p.depth) : make_layout(p.a.type, p.depth, p.rows);
  prepared.d = make_layout(p.d.type, p.cols, p.rows);
  return prepared;
}

std::string device_name() {
  int device = 0;
  cudaDeviceProp properties{};
  KRIGTUNE_CHECK_CUDA(cudaGetDevice(&device));
  KRIGTUNE_CHECK_CUDA(cudaGetDeviceProperties(&properties, device));
  return properties.name;
}

class BlasGemm final : public Gemm {
 public:
  BlasGemm()
      : handle_(make_blas_handle()),
        workspace_(allocate_device(kWorkspaceBytes)),
        stream_(make_stream(false)),
        cache_(algorithm_file(device_name(), blas().get_version())) {}

  void prepare(const Product& product) override {
    const Key key(product);
    if (prepared_.find(key) != prepared_.end()) return;
    Prepared prepared = describe(product);
    point_to_bias(product, prepared);
    if (!recall(key, prepared)) {
      prepared.algorithm = fastest(product, prepared);
      AlgorithmWords words{};
      std::copy(std::begin(prepared.algorithm.data), std::end(prepared.algorithm.data), words.begin());
      cache_.remember(key.text(), words);
    }
    prepared_.emplace(key, std::move(prepared));
  }

  void multiply(const Product& product, Queue queue) override {
    const auto found = prepared_.find(Key(product));
    if (found == prepared_.end()) throw std::logic_error("a product was not prepared before the first step");
    point_to_bias(product, found->second);
    check_blas(start(product, found->second, found->second.algorithm, queue), "cublasLtMatmul", __FILE__, __LINE__);
  }

 private:
  static void point_to_bias(const Product& product, const Prepared& prepared) {
    if (product.bias.data == nullptr) return;
    set_attribute(prepared.description.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, product.bias.data);
  }

  cublasStatus_t start(const Product& product, const Prepared& with, const cublasLtMatmulAlgo_t& algorithm,
                       Queue queue) const {
    const float alpha = 1.0F;
    const float beta = product.d.adds() ? 1.0F : 0.0F;
    return blas().matmul(handle_.get(), with.description.get(), &alpha, product.b.data, with.b.get(), product.a.data,
                         with.a.get(), &beta, product.d.data, with.d.get(), product.d.data, with.d.get(), &algorithm,
                         workspace_.get(), static_cast<std::size_t>(kWorkspaceBytes), queue);
  }

  // From an earlier run, if the library still takes it.
  bool recall(const Key& key, Prepared& prepared) const {
    const auto words = cache_.find(key.text());
    if (!words) return false;
    std::copy(words->begin(), words->end(), std::begin(prepared.algorithm.data));
    cublasLtMatmulHeuristicResult_t checked{};
    const cublasStatus_t status =
        blas().algo_check(handle_.get(), prepared.description.get(), prepared.b.get(), prepared.a.get(),
                          prepared.d.get(), prepared.d.get(), &prepared.algorithm, &checked);
    return status == CUBLAS_STATUS_SUCCESS && checked.workspaceSize <= static_cast<std::size_t>(kWorkspaceBytes);
  }

  std::vector<cublasLtMatmulHeuristicResult_t> candidates(const Product& product, const Prepared& prepared) const {
    const MatmulPreference preference = make_preference();
    set_attribute(preference.get(), CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                  static_cast<std::uint64_t>(kWorkspaceBytes));
    for (const auto attribute :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      set_attribute(preference.get(), attribute, alignment_bytes(product));
    }
    std::vector<cublasLtMatmulHeuristicResult_t> found(kTried);
    int count = 0;
    KRIGTUNE_CHECK_BLAS(blas().get_heuristic(handle_.get(), prepared.description.get(), prepared.b.get(),
                                             prepared.a.get(), prepared.d.get(), prepared.d.get(), preference.get(),
                                             kTried, found.data(), &count));
    found.resize(static_cast<std::size_t>(count));
    if (found.empty()) {
      throw std::runtime_error(
          fmt::format("cuBLASLt has no algorithm for {} x {} x {}", product.rows, product.cols, product.depth));
    }
    return found;
  }

  cublasLtMatmulAlgo_t fastest(const Product& product, const Prepared& prepared) const {
    const auto found = candidates(product, prepared);
    cublasLtMatmulAlgo_t best = found.front().algo;
    double best_s = std::numeric_limits<double>::infinity();
    for (const cublasLtMatmulHeuristicResult_t& candidate : found) {
      const double time = time_s(product, prepared, candidate.algo);
      if (time < best_s) {
        best_s = time;
        best = candidate.algo;
      }
    }
    return best;
  }

  // Infinite for an algorithm that fails: a few of those that are proposed do.
  double time_s(const Product& product, const Prepared& prepared, const cublasLtMatmulAlgo_t& algorithm) const {
    const Span span;
    for (int run = 0; run <= kTimedRuns; ++run) {
      if (run == 1) KRIGTUNE_CHECK_CUDA(cudaEventRecord(span.begin.get(), stream_.get()));
      if (start(product, prepared, algorithm, stream_.get()) != CUBLAS_STATUS_SUCCESS) {
        return std::numeric_limits<double>::infinity();
      }
    }
    KRIGTUNE_CHECK_CUDA(cudaEventRecord(span.end.get(), stream_.get()));
    KRIGTUNE_CHECK_CUDA(cudaStreamSynchronize(stream_.get()));
    return span.elapsed_s();
  }

  BlasHandle handle_;
  DeviceBytes workspace_;
  StreamHandle stream_;  ///< on which algorithms are tried
  AlgorithmCache cache_;
  std::map<Key, Prepared> prepared_;
};

}  // namespace

std::unique_ptr<Gemm> make_blas_gemm() { return std::make_unique<BlasGemm>(); }

}  // namespace krigtune::cuda
