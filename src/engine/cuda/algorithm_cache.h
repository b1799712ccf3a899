#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace krigtune::cuda {

/// A matrix product's algorithm, as the library wants it back: cublasLtMatmulAlgo_t.
using AlgorithmWords = std::array<std::uint64_t, 8>;

/// Which algorithm was fastest for a product, kept from run to run: trying takes time, and another algorithm gives
/// other bits. One file a GPU model and version of the library; what cannot be read or written is tried anew.
class AlgorithmCache {
 public:
  /// An empty path: nothing is kept.
  explicit AlgorithmCache(std::filesystem::path file);

  std::optional<AlgorithmWords> find(const std::string& product) const;
  /// Writes the file, with what other processes have written to it meanwhile.
  void remember(const std::string& product, const AlgorithmWords& algorithm);

 private:
  std::filesystem::path file_;
  std::map<std::string, AlgorithmWords> known_;
};

/// In the cache directory of this user: "matmul_<gpu>_<version>.json", letters and digits only; empty if there is none
/// or the version is 0.
std::filesystem::path algorithm_file(const std::string& gpu, std::size_t library_version);

}  // namespace krigtune::cuda
