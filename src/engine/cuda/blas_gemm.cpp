// cuBLASLt is column-major, and a row-major matrix is its own transpose there: D = A B becomes D^T = B^T A^T, so the
// library's first matrix is our b, and its rows are our columns.
//
// The first choice of its heuristic is not always the fastest, so 32 choices are tried once for each shape. The two
// fastest are also tried with their depth split over more blocks if they leave multiprocessors idle. Those within 2 %
// of the fastest are then timed again for longer.
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

// Owners of the objects that cuBLASLt creates. All functions throw DeviceError.

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
/// Returns the description of a product with sums in fp32.
MatmulDescription make_matmul_description();
/// Returns the layout of a column-major matrix of fp32, bf16 or fp16. Its columns are `stride` elements apart; 0: it is
/// dense.
MatrixLayout make_layout(schedule::DType type, std::int64_t rows, std::int64_t cols, std::int64_t stride = 0);
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

MatrixLayout make_layout(schedule::DType type, std::int64_t rows, std::int64_t cols, std::int64_t stride) {
  cublasLtMatrixLayout_t layout = nullptr;
  KRIGTUNE_CHECK_BLAS(blas().layout_create(&layout, blas_type(type), static_cast<std::uint64_t>(rows),
                                           static_cast<std::uint64_t>(cols), stride > 0 ? stride : rows));
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
constexpr std::uint64_t kMostAlignmentBytes = 256;                 // no kernel profits from more
constexpr std::int64_t kAuxMultiple = 8;                           // of the elements in a row of aux (cublasLt.h)
constexpr int kTried = 32;
constexpr int kTimedRuns = 4;           // of a product that takes less than kSureSeconds; otherwise one run
constexpr double kSureSeconds = 1e-3;   // one run that takes longer is accurate enough
constexpr double kSlow = 1.1;           // algorithms beyond this many times the fastest so far are not run again
constexpr double kClose = 1.02;         // algorithms within this many times the fastest are timed for longer
constexpr double kLongSeconds = 20e-3;  // length of that longer timing, with 4 to 20 runs
constexpr double kNever = std::numeric_limits<double>::infinity();

std::uint32_t alignment_bytes(const Product& p) {
  const auto all = std::bit_cast<std::uintptr_t>(p.a.data) | std::bit_cast<std::uintptr_t>(p.b.data) |
                   std::bit_cast<std::uintptr_t>(p.d.data) | std::bit_cast<std::uintptr_t>(p.aux.data) |
                   kMostAlignmentBytes;
  return static_cast<std::uint32_t>(all & (~all + 1));  // the lowest bit that is set
}

/// The properties of a product on which its algorithm depends.
struct Key {
  std::int64_t rows, cols, depth, a_stride, d_stride;
  bool transpose_a, transpose_b, adds, has_bias, has_sums;
  Epilogue epilogue;
  schedule::DType a, b, d;
  std::uint32_t alignment;

  explicit Key(const Product& p)
      : rows(p.rows),
        cols(p.cols),
        depth(p.depth),
        a_stride(p.a_stride),
        d_stride(p.d_stride),
        transpose_a(p.transpose_a),
        transpose_b(p.transpose_b),
        adds(p.d.adds()),
        has_bias(p.bias.data != nullptr),
        has_sums(p.sums.data != nullptr),
        epilogue(p.epilogue),
        a(p.a.type),
        b(p.b.type),
        d(p.d.type),
        alignment(alignment_bytes(p)) {}
  auto operator<=>(const Key&) const = default;

  std::string text() const {
    return fmt::format("{} x {} x {}{}{}{}{}{}{}{}, types {} {} {}, aligned to {}", rows, cols, depth, strides_text(),
                       transpose_a ? ", a transposed" : "", transpose_b ? ", b transposed" : "", adds ? ", added" : "",
                       has_bias ? ", bias" : "", epilogue_text(), has_sums ? ", sums" : "", static_cast<int>(a),
                       static_cast<int>(b), static_cast<int>(d), alignment);
  }

 private:
  std::string strides_text() const {
    return a_stride == 0 && d_stride == 0 ? "" : fmt::format(", rows {} {} apart", a_stride, d_stride);
  }
  const char* epilogue_text() const {
    return epilogue == Epilogue::kGelu ? ", gelu" : epilogue == Epilogue::kGeluGradient ? ", gelu gradient" : "";
  }
};

struct Prepared {
  MatmulDescription description;
  MatrixLayout a, b, d;
  cublasLtMatmulAlgo_t algorithm{};
};

std::uint32_t epilogue_of(const Product& p) {
  const bool has_bias = p.bias.data != nullptr;
  switch (p.epilogue) {
    case Epilogue::kGelu:
      return has_bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    case Epilogue::kGeluGradient:
      return p.sums.data != nullptr ? CUBLASLT_EPILOGUE_DGELU_BGRAD : CUBLASLT_EPILOGUE_DGELU;
    case Epilogue::kRowSums:
      return CUBLASLT_EPILOGUE_BGRADB;
    case Epilogue::kNone:
      break;
  }
  return has_bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

/// Returns the vector that is added or summed: the library has one pointer for both.
const engine::OperandView& vector_of(const Product& p) { return p.sums.data != nullptr ? p.sums : p.bias; }

Prepared describe(const Product& p) {
  Prepared prepared;
  prepared.description = make_matmul_description();
  cublasLtMatmulDesc_t description = prepared.description.get();
  set_attribute(description, CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set_attribute(description, CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  set_attribute(description, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(p));
  if (const engine::OperandView& vector = vector_of(p); vector.data != nullptr) {
    set_attribute(description, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<std::int32_t>(blas_type(vector.type)));
  }
  if (p.aux.data != nullptr) set_attribute(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p.cols);
  prepared.b = p.transpose_b ? make_layout(p.b.type, p.depth, p.cols) : make_layout(p.b.type, p.cols, p.depth);
  prepared.a = p.transpose_a ? make_layout(p.a.type, p.rows, p.depth, p.a_stride)
                             : make_layout(p.a.type, p.depth, p.rows, p.a_stride);
  prepared.d = make_layout(p.d.type, p.cols, p.rows, p.d_stride);
  return prepared;
}

// Returns whether aux meets the library's requirements for an operand that its epilogue reads or writes.
bool may_have_epilogue(const Product& p) {
  constexpr std::uint32_t kAuxAlignment = 16;
  return p.aux.data == nullptr || (p.cols % kAuxMultiple == 0 && alignment_bytes(p) >= kAuxAlignment);
}

/// An algorithm that was tried.
struct Tried {
  cublasLtMatmulAlgo_t algorithm{};
  float waves = 0.0F;  ///< of blocks, according to the library
  double time_s = kNever;
};

/// The value with which the cache remembers that a product is faster without its epilogue.
constexpr AlgorithmWords kApart{};

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
    point_to_operands(product, prepared);
    if (!recall(key, prepared)) {
      const Tried best = fastest(product, prepared);
      if (best.time_s == kNever) {
        throw std::runtime_error(
            fmt::format("cuBLASLt has no algorithm for {} x {} x {}", product.rows, product.cols, product.depth));
      }
      prepared.algorithm = best.algorithm;
      cache_.remember(key.text(), words_of(best.algorithm));
    }
    prepared_.emplace(key, std::move(prepared));
  }

  bool prefers(const Product& product, const Work& apart, const Work& besides) override {
    const Key key(product);
    if (const auto known = prefers_.find(key); known != prefers_.end()) return known->second;
    bool& answer = prefers_[key];
    if (!may_have_epilogue(product)) return answer;
    Prepared prepared = describe(product);
    point_to_operands(product, prepared);
    const auto remembered = cache_.find(key.text());
    answer = remembered != kApart && (recall(key, prepared) || is_faster(product, prepared, apart, besides));
    if (!remembered || *remembered != words_of(prepared.algorithm)) {
      cache_.remember(key.text(), answer ? words_of(prepared.algorithm) : kApart);
    }
    if (answer) prepared_.emplace(key, std::move(prepared));
    return answer;
  }

  bool is_preferred(const Product& product) const override {
    const auto known = prefers_.find(Key(product));
    return known != prefers_.end() && known->second;
  }

  void multiply(const Product& product, Queue queue) override {
    const auto found = prepared_.find(Key(product));
    if (found == prepared_.end()) throw std::logic_error("a product was not prepared before the first step");
    point_to_operands(product, found->second);
    check_blas(start(product, found->second, found->second.algorithm, queue), "cublasLtMatmul", __FILE__, __LINE__);
  }

 private:
  static AlgorithmWords words_of(const cublasLtMatmulAlgo_t& algorithm) {
    AlgorithmWords words{};
    std::copy(std::begin(algorithm.data), std::end(algorithm.data), words.begin());
    return words;
  }

  static void point_to_operands(const Product& product, const Prepared& prepared) {
    cublasLtMatmulDesc_t description = prepared.description.get();
    if (void* vector = vector_of(product).data; vector != nullptr) {
      set_attribute(description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, vector);
    }
    if (product.aux.data == nullptr) return;
    set_attribute(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, product.aux.data);
  }

  cublasStatus_t start(const Product& product, const Prepared& with, const cublasLtMatmulAlgo_t& algorithm,
                       Queue queue) const {
    const float alpha = 1.0F;
    const float beta = product.d.adds() ? 1.0F : 0.0F;
    return blas().matmul(handle_.get(), with.description.get(), &alpha, product.b.data, with.b.get(), product.a.data,
                         with.a.get(), &beta, product.d.data, with.d.get(), product.d.data, with.d.get(), &algorithm,
                         workspace_.get(), static_cast<std::size_t>(kWorkspaceBytes), queue);
  }

  // Returns whether the library accepts the algorithm for this product and the workspace suffices.
  bool is_possible(const Prepared& prepared, const cublasLtMatmulAlgo_t& algorithm) const {
    cublasLtMatmulHeuristicResult_t checked{};
    const cublasStatus_t status =
        blas().algo_check(handle_.get(), prepared.description.get(), prepared.b.get(), prepared.a.get(),
                          prepared.d.get(), prepared.d.get(), &algorithm, &checked);
    return status == CUBLAS_STATUS_SUCCESS && checked.workspaceSize <= static_cast<std::size_t>(kWorkspaceBytes);
  }

  // Takes the algorithm of an earlier run. Returns whether there is one that is still possible.
  bool recall(const Key& key, Prepared& prepared) const {
    const auto words = cache_.find(key.text());
    if (!words || *words == kApart) return false;
    std::copy(words->begin(), words->end(), std::begin(prepared.algorithm.data));
    return is_possible(prepared, prepared.algorithm);
  }

  // Returns the heuristic's choices; empty if the library does not support such a product.
  std::vector<Tried> candidates(const Product& product, const Prepared& prepared) const {
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
    const cublasStatus_t status =
        blas().get_heuristic(handle_.get(), prepared.description.get(), prepared.b.get(), prepared.a.get(),
                             prepared.d.get(), prepared.d.get(), preference.get(), kTried, found.data(), &count);
    if (status != CUBLAS_STATUS_NOT_SUPPORTED && status != CUBLAS_STATUS_INVALID_VALUE) {
      check_blas(status, "cublasLtMatmulAlgoGetHeuristic", __FILE__, __LINE__);
    }
    std::vector<Tried> tried;
    for (int i = 0; i < count && status == CUBLAS_STATUS_SUCCESS; ++i) {
      const cublasLtMatmulHeuristicResult_t& one = found[static_cast<std::size_t>(i)];
      if (one.state == CUBLAS_STATUS_SUCCESS) tried.push_back({one.algo, one.wavesCount});
    }
    return tried;
  }

  // Returns the fastest algorithm; its time is kNever if there is none.
  Tried fastest(const Product& product, const Prepared& prepared) const {
    std::vector<Tried> all = candidates(product, prepared);
    double best_once_s = kNever;
    const auto time = [&](Tried& one) { one.time_s = quick_time_s(product, prepared, one.algorithm, &best_once_s); };
    const auto sort = [&] {
      std::stable_sort(all.begin(), all.end(), [](const Tried& a, const Tried& b) { return a.time_s < b.time_s; });
    };
    for (Tried& one : all) time(one);
    sort();
    for (Tried& one : splits_of(all, prepared)) {
      time(one);
      all.push_back(one);
    }
    sort();
    if (all.empty() || all.front().time_s == kNever) return {};
    const double best_s = all.front().time_s;
    std::erase_if(all, [&](const Tried& one) { return one.time_s > kClose * best_s; });
    if (all.size() > 1) {
      for (Tried& one : all) one.time_s = time_s(product, prepared, one.algorithm, long_runs(best_s));
      sort();
    }
    return all.front();
  }

  // Returns variants of the two fastest, unless they fill more than two waves of blocks: their depth is split into
  // parts, whose sums are added in a fixed order, so that the bits are the same in every run.
  std::vector<Tried> splits_of(const std::vector<Tried>& sorted, const Prepared& prepared) const {
    constexpr std::size_t kSplit = 2;
    constexpr float kMostWaves = 2.0F;
    constexpr std::uint32_t kScheme = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    std::vector<Tried> splits;
    for (std::size_t i = 0; i < std::min(kSplit, sorted.size()); ++i) {
      if (sorted[i].waves > kMostWaves) continue;
      for (const std::int32_t parts : {2, 3, 4, 8}) {
        Tried split = sorted[i];
        const bool is_taken = blas().algo_config_set_attribute(&split.algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM,
                                                               &parts, sizeof(parts)) == CUBLAS_STATUS_SUCCESS &&
                              blas().algo_config_set_attribute(&split.algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME,
                                                               &kScheme, sizeof(kScheme)) == CUBLAS_STATUS_SUCCESS;
        if (is_taken && is_possible(prepared, split.algorithm)) splits.push_back(split);
      }
    }
    return splits;
  }

  // Returns whether the epilogue is faster. Leaves its fastest algorithm in `prepared`.
  bool is_faster(const Product& product, Prepared& prepared, const Work& apart, const Work& besides) const {
    const Tried best = fastest(product, prepared);
    if (best.time_s == kNever) return false;
    prepared.algorithm = best.algorithm;
    const auto together = [&](Queue queue) {
      start(product, prepared, prepared.algorithm, queue);
      if (besides) besides(queue);
    };
    const int runs = long_runs(best.time_s);
    return work_s(together, runs) < work_s(apart, runs);
  }

  static int long_runs(double time_s) {
    constexpr double kLeast = 4.0, kMost = 20.0;
    return static_cast<int>(std::clamp(kLongSeconds / time_s, kLeast, kMost));
  }

  // The time of a single run includes that of the events themselves, so single runs are compared with single runs.
  double quick_time_s(const Product& product, const Prepared& prepared, const cublasLtMatmulAlgo_t& algorithm,
                      double* best_once_s) const {
    const double once_s = time_s(product, prepared, algorithm, 1);
    *best_once_s = std::min(*best_once_s, once_s);
    const bool is_enough = once_s > kSureSeconds || once_s > kSlow * *best_once_s;
    return is_enough ? once_s : time_s(product, prepared, algorithm, kTimedRuns);
  }

  // Returns the time of one run. It is infinite if the algorithm fails, as a few of the proposed ones do.
  double time_s(const Product& product, const Prepared& prepared, const cublasLtMatmulAlgo_t& algorithm,
                int runs) const {
    bool failed = false;
    const double seconds = work_s(
        [&](Queue queue) { failed = failed || start(product, prepared, algorithm, queue) != CUBLAS_STATUS_SUCCESS; },
        runs);
    return failed ? kNever : seconds;
  }

  double work_s(const Work& work, int runs) const {
    const Span span;
    work(stream_.get());
    KRIGTUNE_CHECK_CUDA(cudaEventRecord(span.begin.get(), stream_.get()));
    for (int run = 0; run < runs; ++run) work(stream_.get());
    KRIGTUNE_CHECK_CUDA(cudaEventRecord(span.end.get(), stream_.get()));
    KRIGTUNE_CHECK_CUDA(cudaStreamSynchronize(stream_.get()));
    return span.elapsed_s() / runs;
  }

  BlasHandle handle_;
  DeviceBytes workspace_;
  StreamHandle stream_;  ///< on which algorithms are tried
  AlgorithmCache cache_;
  std::map<Key, Prepared> prepared_;
  std::map<Key, bool> prefers_;  ///< for products with an epilogue
};

}  // namespace

std::unique_ptr<Gemm> make_blas_gemm() { return std::make_unique<BlasGemm>(); }

}  // namespace krigtune::cuda
